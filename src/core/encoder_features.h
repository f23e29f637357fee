// Encoder inputs that are not token ids: media, in the form that the model's family reads. Values. content_digest() is
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/content_digest.h"

namespace transept {

// One media item. multimodal/ makes it; it is immutable from then on. The request, its group and its handles share one
// object; the plan of the step that encodes it holds a copy of the values (SchedulerOutputs::bulk).
struct EncoderFeatures {
  // Log-mel audio: [num_mel_bins, num_frames]; raw audio: [num_samples]. Row-major; product(shape) == values.size().
  std::vector<int64_t> shape;
  std::vector<float> values;
  int32_t num_positions = 0;  // rows of the encoder's output; cross blocks hold this many slots
  double audio_seconds = 0;   // length of the input, without padding
  bool operator==(const EncoderFeatures&) const = default;
};

// A view of features that are stored elsewhere: in an EncoderFeatures, or in a step's plan.
struct FeaturesView {
  std::span<const int64_t> shape;
  std::span<const float> values;

  FeaturesView() = default;
  FeaturesView(std::span<const int64_t> axes, std::span<const float> numbers) : shape(axes), values(numbers) {}
  FeaturesView(const EncoderFeatures& features)  // NOLINT(google-explicit-constructor): the same thing
      : shape(features.shape), values(features.values) {}
};

// Everything that determines an encoder's output: ids or features, never both. Neither: a decoder-only request.
struct EncoderContent {
  std::vector<int32_t> token_ids;
  std::shared_ptr<const EncoderFeatures> features;
  std::optional<ContentDigest> digest;  // content_digest() of the two, if it was computed already

  EncoderContent() = default;
  EncoderContent(std::vector<int32_t> ids, std::shared_ptr<const EncoderFeatures> media = nullptr)  // NOLINT: a value
      : token_ids(std::move(ids)), features(std::move(media)) {}

  // Positions of the encoder's output.
  int32_t num_positions() const {
    return features != nullptr ? features->num_positions : static_cast<int32_t>(token_ids.size());
  }
};

// Returns the digest of an encoder input. Equal digests mean equal inputs; the inputs themselves are not compared.
// SHA-256 of the salt, the modality ("text" or "audio"), the shape (for ids: [number of ids]) and the values,
// little-endian. Each text follows its size and each shape its rank, in 8 bytes. Different salts give different
// digests. `content.digest` is not read. Takes 0.7 ms for a window of Whisper: call it off the engine thread.
ContentDigest content_digest(const EncoderContent& content, std::string_view salt = {});

}  // namespace transept
