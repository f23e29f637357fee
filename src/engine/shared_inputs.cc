#include "engine/shared_inputs.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"

namespace transept {

// What handles leave when they are dropped, on whatever thread. Outlives the engine if they do.
struct EncodedInput::DroppedPins {
  Mutex mutex;
  std::vector<ContentDigest> digests ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const std::function<void()>> on_drop ABSL_GUARDED_BY(mutex);

  void add(std::span<const ContentDigest> pinned) {
    std::shared_ptr<const std::function<void()>> tell;
    {
      const MutexLock lock(mutex);
      digests.insert(digests.end(), pinned.begin(), pinned.end());
      tell = on_drop;
    }
    if (tell != nullptr) (*tell)();
  }
};

struct EncodedInput::Pin {
  std::shared_ptr<DroppedPins> dropped;
  std::vector<EncoderItem> items;
  std::vector<ContentDigest> digests;
  std::optional<std::string> text;

  Pin(std::shared_ptr<DroppedPins> list, std::vector<EncoderItem> input_items, std::vector<ContentDigest> pinned,
      std::optional<std::string> input_text)
      : dropped(std::move(list)),
        items(std::move(input_items)),
        digests(std::move(pinned)),
        text(std::move(input_text)) {}
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() { dropped->add(digests); }
};

const std::vector<EncoderItem>& EncodedInput::items() const {
  CHECK(has_value(), "an empty handle");
  return pin_->items;
}

const std::optional<std::string>& EncodedInput::text() const {
  CHECK(has_value(), "an empty handle");
  return pin_->text;
}

const void* EncodedInput::owner() const {
  CHECK(has_value(), "an empty handle");
  return pin_->dropped.get();
}

SharedInputs::SharedInputs(Scheduler& scheduler, bool share_identical)
    : scheduler_(scheduler),
      share_identical_(share_identical),
      dropped_(std::make_shared<EncodedInput::DroppedPins>()) {}

SharedInputs::~SharedInputs() = default;

SharedInputs::Digests SharedInputs::digests_of(std::span<const EncoderItem> items) {
  Digests digests;
  int32_t num_crossed = 0;
  for (const EncoderItem& item : items) {
    digests.push_back(*item.digest);
    num_crossed += has(item.consumers, Consumers::kCross) ? 1 : 0;
  }
  if (num_crossed > 1) digests.push_back(cross_digest(items));
  return digests;
}

// A digest that nothing else has, of no content: SHA-256 gives none that ends in 24 zeros.
ContentDigest SharedInputs::next_alone() {
  ContentDigest digest;
  const uint64_t number = ++num_alone_;
  std::memcpy(digest.bytes.data(), &number, sizeof number);
  return digest;
}

void SharedInputs::join(std::span<const ContentDigest> digests) {
  for (const ContentDigest& digest : digests) {
    if (++inputs_[digest].num_users == 1) scheduler_.pin_input(digest);
  }
}

bool SharedInputs::attach(GroupId group_id, std::vector<EncoderItem>& items, std::string_view salt) {
  if (!share_identical_ || num_positions(items) == 0) return false;
  make_digests(items, salt);
  add(group_id, digests_of(items));
  return true;
}

void SharedInputs::attach(GroupId group_id, const EncodedInput& handle, std::vector<EncoderItem>& items) {
  CHECK(owns(handle), "a handle of another engine");
  items = items_in_places(handle.items(), items);
  const std::vector<ContentDigest>& digests = handle.pin_->digests;
  for (size_t i = 0; i < items.size(); ++i) items[i].digest = digests[i];
  add(group_id, Digests(digests.begin(), digests.end()));
}

void SharedInputs::add(GroupId group_id, Digests digests) {
  join(digests);
  CHECK(groups_.emplace(group_id, std::move(digests)).second, "group ", group_id.value(), " has items already");
}

void SharedInputs::detach(GroupId group_id) {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end()) return;
  const Digests digests = std::move(entry->second);
  groups_.erase(entry);
  for (const ContentDigest& digest : digests) leave(digest);
}

EncodedInput SharedInputs::hold(std::vector<EncoderItem> items, std::optional<std::string> text,
                                std::string_view salt) {
  std::vector<EncoderItem> told = items;
  if (share_identical_) {
    make_digests(told, salt);
  } else {
    for (EncoderItem& item : told) item.digest = next_alone();
  }
  const Digests digests = digests_of(told);
  join(digests);
  return EncodedInput(std::make_shared<const EncodedInput::Pin>(
      dropped_, std::move(items), std::vector<ContentDigest>(digests.begin(), digests.end()), std::move(text)));
}

void SharedInputs::collect_dropped() {
  std::vector<ContentDigest> digests;
  {
    const MutexLock lock(dropped_->mutex);
    digests.swap(dropped_->digests);
  }
  for (const ContentDigest& digest : digests) leave(digest);
}

void SharedInputs::set_on_drop(std::shared_ptr<const std::function<void()>> on_drop) {
  const MutexLock lock(dropped_->mutex);
  dropped_->on_drop.swap(on_drop);
}

bool SharedInputs::count_encode(GroupId group_id, size_t item) {
  const auto entry = groups_.find(group_id);
  return entry != groups_.end() && std::exchange(inputs_.at(entry->second[item]).was_encoded, true);
}

void SharedInputs::leave(const ContentDigest& digest) {
  const auto entry = inputs_.find(digest);
  if (--entry->second.num_users > 0) return;
  inputs_.erase(entry);
  scheduler_.unpin_input(digest);
}

}  // namespace transept
