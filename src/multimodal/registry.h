// Converts multi_modal_data to encoder features, per model family (vLLM's MultiModalRegistry). Media come as a path, as
// base64 or as raw samples. Paths are opened only if MediaAccess allows them. LoadedModel owns the registry. Immutable
// after construction, so thread-safe: media are decoded on the caller's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "core/encoder_features.h"
#include "core/model_config.h"
#include "media/audio_reader.h"
#include "multimodal/audio_processor.h"

namespace transept {

// Rights of the caller.
struct MediaAccess {
  bool local_paths = false;
  std::string allowed_path = {};  // if not empty: only files below this folder
};

// Limits of one item, checked before and during decoding.
struct MediaLimits {
  size_t max_bytes = size_t{1} << 30;  // of a file, by path or base64 (decoded); not of raw samples
  double max_audio_seconds = 4 * 60 * 60;
  std::optional<int32_t> max_positions;  // of the encoder's input; none: the family's own limit
  bool first_window_alone = false;       // drops the audio beyond one window; else it is an error
};

// Opens one audio item: a path, {"base64": ..} or {"samples": [..], "sampling_rate": ..}. The reader gives mono samples
// at `sampling_rate` hertz. error_param is multi_modal_data. Errors: kInvalidArgument for another shape, a path that is
// not allowed (if allowed_path is set: also a path that cannot be read), or more than max_bytes; else the errors of
// AudioBytes::from_file and AudioReader::open or from_samples: a path that cannot be read, no audio, too much audio.
StatusOr<std::unique_ptr<AudioReader>> open_audio(const Json& item, int32_t sampling_rate, const MediaAccess& access,
                                                  const MediaLimits& limits);

class MultiModalRegistry final {
 public:
  // A family without media gets an empty registry. Errors: those of make_log_mel_processor and make_waveform_processor.
  static StatusOr<std::unique_ptr<MultiModalRegistry>> create(const ModelConfig& config);

  const AudioProcessor* audio() const { return audio_.get(); }  // null: the family takes no audio

  // Returns the features of the one item of `multi_modal_data`. Decodes little more than one window of it. error_param
  // is multi_modal_data. Errors: kInvalidArgument for no object, a modality that the family does not take, no item or
  // several; kOutOfRange for more than one window (the message names transcribe); open_audio's and AudioReader::read's.
  StatusOr<std::shared_ptr<const EncoderFeatures>> process(const Json& multi_modal_data, const MediaAccess& access,
                                                           const MediaLimits& limits = {}) const;

 private:
  StatusOr<const Json*> audio_item(const Json& multi_modal_data) const;

  std::string family_;
  std::unique_ptr<AudioProcessor> audio_;
};

}  // namespace transept
