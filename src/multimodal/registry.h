// Converts multi_modal_data to encoder features, per model family (vLLM's MultiModalRegistry). Media come as a path, as
// base64, or as raw samples or pixels. Paths are opened only if MediaAccess allows them. LoadedModel owns the registry.
// Immutable after construction, so thread-safe: media are decoded on the caller's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
#include "multimodal/image_rows.h"
#include "multimodal/media_access.h"
#include "multimodal/structured_answers.h"

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

// The font of --header-font; null for "". Errors: those of HeaderFont::load, behind the flag's name.
StatusOr<std::shared_ptr<const HeaderFont>> load_header_font(const std::string& path);

class MultiModalRegistry final {
 public:
  // A family without media gets an empty registry. header_font: what questions are drawn with; null: --header-font was
  // not given. Errors: those of make_log_mel_processor, make_waveform_processor, make_image_processor and of the
  // family's ImageRows; kInvalidArgument for a font where no question is drawn.
  static StatusOr<std::unique_ptr<MultiModalRegistry>> create(
      const ModelConfig& config, Isa isa = detect_isa(),
      const std::shared_ptr<const HeaderFont>& header_font = nullptr);

  const AudioProcessor* audio() const { return audio_.get(); }  // null: the family takes no audio
  const ImageProcessor* image() const { return image_.get(); }  // null: the family takes no images

  // Null: answers are text alone.
  const StructuredAnswers* structured() const { return structured_.get(); }

  using Items = std::vector<std::shared_ptr<const EncoderFeatures>>;

  // Returns the features of the items of `multi_modal_data`, {"audio": X} or {"image": X}; X may be a list. Audio is
  // one item, of which little more than one window is decoded; images come in their order, decoded one at a time. A
  // family that reads a picture in several forms gets an item for each form, in the processor's order (forms()).
  // num_positions and num_rows are 0 for families that are not run yet. error_param is multi_modal_data. Errors:
  // kInvalidArgument for no object, a modality that the family does not take, no item or more than the family or the
  // limits allow; kOutOfRange for audio of more than one window (the message names transcribe); those of open_audio and
  // AudioReader::read, of open_image, ImageProcessor::features and ImageRows::count. question: what is drawn above each
  // image; models that draw one refuse items without it, others do not look at it.
  StatusOr<Items> process(const Json& multi_modal_data, const MediaAccess& access, const MediaLimits& limits = {},
                          const std::optional<std::string>& question = {}) const;

  // Whether requests need a question, that is drawn above each image.
  bool draws_question() const { return image_ != nullptr && image_->draws_header(); }

  // Checks features that another process has made: models take only what process() makes. Errors (kInvalidArgument):
  // another modality, a shape that the family does not make, counts that the shape does not give.
  Status check(const EncoderFeatures& features) const;

 private:
  StatusOr<std::shared_ptr<const EncoderFeatures>> audio_features(const Json& item, const MediaAccess& access,
                                                                  const MediaLimits& limits) const;
  // Of one picture: an item for each form that the family reads.
  StatusOr<Items> image_features(const Json& item, const MediaAccess& access, const MediaLimits& limits,
                                 const std::optional<std::string>& question, std::string_view name) const;
  StatusOr<Items> forms_of(RgbImage image, const std::optional<std::string>& question, const MediaAccess& access,
                           std::string_view name) const;
  StatusOr<const Json*> only_modality(const Json& multi_modal_data) const;

  std::string family_;
  int32_t max_items_ = 1;
  std::unique_ptr<AudioProcessor> audio_;
  std::unique_ptr<ImageProcessor> image_;
  std::unique_ptr<ImageRows> image_rows_;
  std::unique_ptr<StructuredAnswers> structured_;
};

}  // namespace transept
