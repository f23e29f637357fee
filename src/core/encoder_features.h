// What an encoder is given that is not token ids: media, as the model's family wants them. Values.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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

// All that determines an encoder's output: ids or features, never both. Neither: a decoder-only request.
struct EncoderContent {
  std::vector<int32_t> token_ids;
  std::shared_ptr<const EncoderFeatures> features;

  EncoderContent() = default;
  EncoderContent(std::vector<int32_t> ids, std::shared_ptr<const EncoderFeatures> media = nullptr)  // NOLINT: a value
      : token_ids(std::move(ids)), features(std::move(media)) {}

  // Positions of the encoder's output.
  int32_t num_positions() const {
    return features != nullptr ? features->num_positions : static_cast<int32_t>(token_ids.size());
  }
  bool operator==(const EncoderContent& other) const {
    if (token_ids != other.token_ids || (features == nullptr) != (other.features == nullptr)) return false;
    return features == other.features || *features == *other.features;
  }
};

}  // namespace transept
