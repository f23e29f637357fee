#include "core/encoder_features.h"

#include <bit>
#include <span>

namespace transept {

static_assert(std::endian::native == std::endian::little, "a digest is of values lowest byte first");

ContentDigest content_digest(const EncoderContent& content, std::string_view salt) {
  DigestBuilder builder;
  builder.add_text(salt);
  const auto add = [&](std::string_view modality, std::span<const int64_t> shape, std::span<const std::byte> values) {
    builder.add_text(modality);
    builder.add_number(static_cast<int64_t>(shape.size()));
    for (const int64_t size : shape) builder.add_number(size);
    builder.add_bytes(values);
  };
  if (content.features != nullptr) {
    add("audio", content.features->shape, std::as_bytes(std::span(content.features->values)));
  } else {
    const auto size = static_cast<int64_t>(content.token_ids.size());
    add("text", {&size, 1}, std::as_bytes(std::span(content.token_ids)));
  }
  return builder.finish();
}

}  // namespace transept
