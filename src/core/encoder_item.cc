#include "core/encoder_item.h"

#include <bit>
#include <utility>

#include "base/check.h"

namespace transept {

static_assert(std::endian::native == std::endian::little, "a digest is of values lowest byte first");

int32_t num_cross_positions(std::span<const EncoderItem> items) {
  int32_t sum = 0;
  for (const EncoderItem& item : items) sum += has(item.consumers, Consumers::kCross) ? item.num_positions() : 0;
  return sum;
}

CrossPlace cross_place(std::span<const EncoderItem> items, size_t index) {
  CrossPlace place{.num_last = items[index].num_last_positions()};
  int32_t num_last_before = 0, num_first = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!has(items[i].consumers, Consumers::kCross)) continue;
    const int32_t first = items[i].num_positions() - items[i].num_last_positions();
    if (i < index) {
      place.begin += first;
      num_last_before += items[i].num_last_positions();
    }
    num_first += first;
  }
  place.last_begin = num_first + num_last_before;
  return place;
}

int32_t num_positions(std::span<const EncoderItem> items) {
  int32_t sum = 0;
  for (const EncoderItem& item : items) sum += item.num_positions();
  return sum;
}

ContentDigest item_digest(const EncoderItem& item, std::string_view salt) {
  if (item.remote.has_value()) return item.remote->digest;
  DigestBuilder builder;
  builder.add_text(salt);
  // They choose the encoder where a family has two; texts and audio are crossed.
  if (item.consumers != Consumers::kCross) {
    builder.add_text("consumers");
    builder.add_number(static_cast<int64_t>(item.consumers));
  }
  const auto add = [&](Modality modality, std::span<const int64_t> shape, std::span<const std::byte> values) {
    builder.add_text(modality_name(modality));
    builder.add_number(static_cast<int64_t>(shape.size()));
    for (const int64_t size : shape) builder.add_number(size);
    builder.add_bytes(values);
  };
  if (item.features == nullptr || !item.token_ids.empty()) {
    const auto size = static_cast<int64_t>(item.token_ids.size());
    add(Modality::kText, {&size, 1}, std::as_bytes(std::span(item.token_ids)));
  }
  if (item.features != nullptr) {
    add(item.features->modality, item.features->shape, std::as_bytes(std::span(item.features->values)));
    if (!item.features->extras.empty()) {
      builder.add_text("extras");
      builder.add_number(static_cast<int64_t>(item.features->extras.size()));
      builder.add_bytes(std::as_bytes(std::span(item.features->extras)));
    }
  }
  return builder.finish();
}

void make_remote(EncoderItem& item, uint32_t index) {
  if (!item.digest.has_value()) item.digest = item_digest(item);
  const RemoteInput remote{*item.digest, item.num_positions(), index, item.num_last_positions()};
  item.content = std::make_shared<const EncoderItem>(item);
  item.features = nullptr;
  item.remote = remote;
}

void make_local(EncoderItem& item) {
  CHECK(item.remote.has_value() && item.content != nullptr, "an item that another process has asked for");
  // The content's are those of whoever made it remote: a handle, whose requests have places of their own.
  EncoderItem local = *item.content;
  local.splice_offset = item.splice_offset;
  local.digest = item.digest;
  item = std::move(local);
}

std::vector<EncoderItem> items_in_places(std::vector<EncoderItem> items, std::span<const EncoderItem> placed) {
  CHECK(placed.empty() || placed.size() == items.size(), placed.size(), " places for ", items.size(), " items");
  for (size_t i = 0; i < placed.size(); ++i) items[i].splice_offset = placed[i].splice_offset;
  return items;
}

const EncoderFeatures* media_of(const EncoderItem& item) {
  return item.content != nullptr ? item.content->features.get() : item.features.get();
}

void make_digests(std::vector<EncoderItem>& items, std::string_view salt) {
  for (EncoderItem& item : items) {
    if (!item.digest.has_value()) item.digest = item_digest(item, salt);
  }
}

ContentDigest cross_digest(std::span<const EncoderItem> items) {
  DigestBuilder builder;
  builder.add_text("items");
  const EncoderItem* last = nullptr;
  int64_t count = 0;
  for (const EncoderItem& item : items) {
    if (!has(item.consumers, Consumers::kCross)) continue;
    CHECK(item.digest.has_value(), "an item without a digest");
    builder.add_bytes(item.digest->bytes);
    last = &item;
    ++count;
  }
  CHECK(last != nullptr, "no item is crossed");
  if (count == 1) return *last->digest;
  builder.add_number(count);
  return builder.finish();
}

}  // namespace transept
