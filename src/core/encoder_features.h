// What an encoder is given that is not token ids: media, as the model's family wants them. Values.
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

// One media item. Made by multimodal/ (or speech/, for windows of long audio), immutable from then on: the request,
// handles of it and the plan of the step that encodes it share it.
struct EncoderFeatures {
  // Audio as log-mel: [num_mel_bins, num_frames]; audio as it is: [num_samples]. Row-major; the product is the number
  // of values.
  std::vector<int64_t> shape;
  std::vector<float> values;
  int32_t num_positions = 0;  // that the encoder makes of it; cross blocks are counted in these
  double audio_seconds = 0;   // of the input, padding aside
  bool operator==(const EncoderFeatures&) const = default;
};

// Features where they lie: in an EncoderFeatures, or in a step's plan.
struct FeaturesView {
  std::span<const int64_t> shape;
  std::span<const float> values;

  FeaturesView() = default;
  FeaturesView(std::span<const int64_t> axes, std::span<const float> numbers) : shape(axes), values(numbers) {}
  FeaturesView(const EncoderFeatures& features)  // NOLINT(google-explicit-constructor): the same thing
      : shape(features.shape), values(features.values) {}
};

// All that determines an encoder's output: ids or features, never both. Neither: a decoder-only request.
struct EncoderContent {
  std::vector<int32_t> token_ids;
  std::shared_ptr<const EncoderFeatures> features;
  std::optional<ContentDigest> digest;  // content_digest of these, if it was made already

  EncoderContent() = default;
  EncoderContent(std::vector<int32_t> ids, std::shared_ptr<const EncoderFeatures> media = nullptr)  // NOLINT: a value
      : token_ids(std::move(ids)), features(std::move(media)) {}

  // Positions of the encoder's output.
  int32_t num_positions() const {
    return features != nullptr ? features->num_positions : static_cast<int32_t>(token_ids.size());
  }
};

// Equal digests mean equal inputs: nothing is compared. SHA-256 of the salt, the modality ("text" or "audio"), the
// shape (of ids their number) and the values, little-endian; texts behind their sizes and shapes behind their ranks, as
// 8 bytes each. Inputs of different salts share nothing. Takes 0.7 ms a window of Whisper: off the engine's thread.
ContentDigest content_digest(const EncoderContent& content, std::string_view salt = {});

}  // namespace transept
