// Converts multi_modal_data to encoder features, per model family (vLLM's MultiModalRegistry). Media come as a path, as
// base64, or as raw samples or pixels. Paths are opened only if MediaAccess allows them. LoadedModel owns the registry.
// Immutable after construction, so thread-safe: media are decoded on the caller's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/isa.h"
#include "base/json.h"
#include "base/status.h"
#include "core/encoder_features.h"
#include "core/model_config.h"
#include "media/audio_reader.h"
#include "multimodal/audio_processor.h"
#include "multimodal/image_processor.h"
#include "multimodal/media_access.h"

namespace transept {

// Opens one audio item: a path, {"base64": ..} or {"samples": [..], "sampling_rate": ..}. The reader gives mono samples
// at `sampling_rate` hertz. error_param is multi_modal_data. Errors: kInvalidArgument for another shape, a path that is
// not allowed (if allowed_path is set: also a path that cannot be read), or more than max_bytes; else the errors of
// AudioBytes::from_file and AudioReader::open or from_samples: a path that cannot be read, no audio, too much audio.
StatusOr<std::unique_ptr<AudioReader>> open_audio(const Json& item, int32_t sampling_rate, const MediaAccess& access,
                                                  const MediaLimits& limits);

// Opens and decodes one image item: a path, "data:image/png;base64,..", {"base64": ".."}, or {"rgb": base64, "width":
// .., "height": ..}. The format is found by the first bytes, whatever the URL says. `name` is the item's in messages:
// "image" or "image[2]". error_param is multi_modal_data. Errors: kInvalidArgument for another shape, a URL that would
// have to be fetched, a path that is not allowed (if allowed_path is set: also a path that cannot be read), more than a
// limit, base64 or pixels that are not what they say; else those of read_file, ImageReader::open and decode.
StatusOr<RgbImage> open_image(const Json& item, const MediaAccess& access, const MediaLimits& limits,
                              std::string_view name = "image");

class MultiModalRegistry final {
 public:
  // A family without media gets an empty registry. Errors: those of make_log_mel_processor, make_waveform_processor and
  // make_image_processor.
  static StatusOr<std::unique_ptr<MultiModalRegistry>> create(const ModelConfig& config, Isa isa = detect_isa());

  const AudioProcessor* audio() const { return audio_.get(); }  // null: the family takes no audio
  const ImageProcessor* image() const { return image_.get(); }  // null: the family takes no images

  // Returns the features of the one item of `multi_modal_data`. Decodes little more than one window of it. error_param
  // is multi_modal_data. Errors: kInvalidArgument for no object, a modality that the family does not take, no item or
  // several; kOutOfRange for more than one window (the message names transcribe); open_audio's and AudioReader::read's.
  StatusOr<std::shared_ptr<const EncoderFeatures>> process(const Json& multi_modal_data, const MediaAccess& access,
                                                           const MediaLimits& limits = {}) const;

  // Returns the features of the images of `multi_modal_data`, {"image": X} or {"image": [X, ..]}, in their order. One
  // is decoded at a time. error_param is multi_modal_data. Errors: kInvalidArgument for no object, a modality that the
  // family does not take, no image or more than max_images; open_image's and ImageProcessor::features's.
  StatusOr<std::vector<std::shared_ptr<const EncoderFeatures>>> images(const Json& multi_modal_data,
                                                                       const MediaAccess& access,
                                                                       const MediaLimits& limits = {}) const;

 private:
  StatusOr<const Json*> only_modality(const Json& multi_modal_data, Modality modality, bool is_taken) const;
  StatusOr<const Json*> audio_item(const Json& multi_modal_data) const;

  std::string family_;
  std::unique_ptr<AudioProcessor> audio_;
  std::unique_ptr<ImageProcessor> image_;
};

}  // namespace transept
