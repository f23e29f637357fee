// Encoder inputs that are not token ids: media, in the form that the model's family reads. Values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace transept {

enum class Modality : uint8_t { kText, kAudio, kImage };

// "text", "audio", "image": keys of multi_modal_data, and part of a digest.
std::string_view modality_name(Modality modality);

// How a picture was taken; sides in pixels.
struct ImageSizes {
  int32_t width = 0, height = 0;            // as it was sent, upright; 0: not known
  int32_t used_width = 0, used_height = 0;  // of what the tower gets, with padding
  int32_t num_tiles = 1;
  bool operator==(const ImageSizes&) const = default;
};

// One media item. multimodal/ makes it; it is immutable from then on. The request, its group and its handles share one
// object; the plan of the step that encodes it holds a copy of the values (SchedulerOutputs::bulk).
struct EncoderFeatures {
  Modality modality = Modality::kAudio;
  // Log-mel audio: [num_mel_bins, num_frames]; raw audio: [num_samples]. Row-major; product(shape) == values.size().
  std::vector<int64_t> shape;
  std::vector<float> values;
  std::vector<int32_t> extras;  // what else the family's encoder reads (grids, aspect ratios); most have none
  int32_t num_positions = 0;    // rows that the encoder makes of them, or its tower where ids stand beside them
  int32_t num_rows = 0;         // rows of the encoder's widest layer; 0: num_positions
  // Of num_positions, the last so many stand behind those of all items in a cross table: padding, which few rows of the
  // decoder see (Mllama's tiles that are not in use; decision 47).
  int32_t num_last_positions = 0;
  double audio_seconds = 0;  // length of the input, without padding
  ImageSizes image;          // of a picture that this process has read
  bool operator==(const EncoderFeatures&) const = default;
};

// A view of features that are stored elsewhere: in an EncoderFeatures, or in a step's plan.
struct FeaturesView {
  std::span<const int64_t> shape;
  std::span<const float> values;
  std::span<const int32_t> extras;

  FeaturesView() = default;
  FeaturesView(std::span<const int64_t> axes, std::span<const float> numbers, std::span<const int32_t> others = {})
      : shape(axes), values(numbers), extras(others) {}
  FeaturesView(const EncoderFeatures& features)  // NOLINT(google-explicit-constructor): the same thing
      : shape(features.shape), values(features.values), extras(features.extras) {}
};

}  // namespace transept
