#include "disagg/input_codec.h"

#include <memory>
#include <utility>

#include "base/byte_stream.h"
#include "base/checked_math.h"

namespace transept {
namespace {

constexpr uint64_t kVersion = 1;
constexpr size_t kMaxRank = 8;
constexpr double kMaxAudioSeconds = 1e9;

// The product of the axes; -1: an axis is below one, or it cannot be counted.
int64_t num_values(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t axis : shape) {
    const auto next = axis < 1 ? std::nullopt : checked_mul(product, axis);
    if (!next) return -1;
    product = *next;
  }
  return product;
}

int32_t count(ByteReader& reader, std::string_view name, int32_t least) {
  const auto value = reader.integer<int32_t>(name);
  if (reader.ok() && value < least) reader.fail(name, "is out of range");
  return value;
}

std::shared_ptr<const EncoderFeatures> decode_features(ByteReader& reader) {
  auto features = std::make_shared<EncoderFeatures>();
  const uint64_t modality = reader.varint("modality");
  if (modality > static_cast<uint64_t>(Modality::kImage)) reader.fail("modality", "is unknown");
  features->modality = static_cast<Modality>(modality);
  const size_t rank = reader.count("shape", 1);
  if (reader.ok() && (rank == 0 || rank > kMaxRank)) reader.fail("shape", "has no axis, or more than 8");
  for (size_t i = 0; i < rank && reader.ok(); ++i) features->shape.push_back(reader.zigzag("shape"));
  reader.floats("values", features->values);
  if (reader.ok() && num_values(features->shape) != static_cast<int64_t>(features->values.size())) {
    reader.fail("values", "are not as many as the shape says");
  }
  reader.ints("extras", features->extras);
  features->num_positions = count(reader, "num_positions", 1);
  features->num_rows = count(reader, "num_rows", 0);
  features->audio_seconds = reader.float64("audio_seconds");
  if (reader.ok() && !(features->audio_seconds >= 0 && features->audio_seconds <= kMaxAudioSeconds)) {
    reader.fail("audio_seconds", "is out of range");
  }
  return features;
}

}  // namespace

void encode_input(const EncoderItem& item, std::vector<std::byte>& bytes) {
  bytes.clear();
  ByteWriter writer(bytes);
  writer.varint(kVersion);
  writer.varint(static_cast<uint64_t>(item.consumers));
  writer.zigzag(item.splice_offset);
  writer.ints(item.token_ids);
  writer.flag(item.features != nullptr);
  if (item.features == nullptr) return;
  const EncoderFeatures& features = *item.features;
  writer.varint(static_cast<uint64_t>(features.modality));
  writer.varint(features.shape.size());
  for (const int64_t axis : features.shape) writer.zigzag(axis);
  writer.floats(features.values);
  writer.ints(features.extras);
  writer.zigzag(features.num_positions);
  writer.zigzag(features.num_rows);
  writer.float64(features.audio_seconds);
}

StatusOr<EncoderItem> decode_input(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "an input");
  EncoderItem item;
  if (reader.varint("version") != kVersion) reader.fail("version", "is another one than 1");
  const uint64_t consumers = reader.varint("consumers");
  if (consumers < 1 || consumers > static_cast<uint64_t>(Consumers::kCross | Consumers::kSplice)) {
    reader.fail("consumers", "are none, or unknown");
  }
  item.consumers = static_cast<Consumers>(consumers);
  item.splice_offset = count(reader, "splice_offset", 0);
  reader.ints("token_ids", item.token_ids);
  if (reader.flag("has_features")) item.features = decode_features(reader);
  if (reader.ok() && item.num_positions() == 0) reader.fail("token_ids", "are none, and there are no features");
  if (reader.ok() && reader.num_left() > 0) reader.fail("audio_seconds", "is not the last field");
  RETURN_IF_ERROR(reader.status());
  return item;
}

}  // namespace transept
