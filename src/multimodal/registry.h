// multi_modal_data -> model inputs, per model family (vLLM's MultiModalRegistry). Media come as a path, as base64 or as
// raw samples; paths are followed only where the caller is local and allowed to. Immutable after construction, so
// thread-safe: media are decoded on whatever thread asks.
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

// What a caller may do.
struct MediaAccess {
  bool local_paths = false;
  std::string allowed_path = {};  // with a value: only files below this folder
};

// Checked before anything is decoded, and while it is.
struct MediaLimits {
  size_t max_bytes = size_t{1} << 30;      // of the item, encoded
  double max_audio_seconds = 4 * 60 * 60;  // of the item
  std::optional<int32_t> max_positions;    // of the encoder's input; none: as many as the family has
  bool first_window_alone = false;         // what is beyond it is left out, instead of an error
};

// One audio item: a path, {"base64": ..} or {"samples": [..], "sampling_rate": ..}. Errors, under multi_modal_data:
// another shape, a path where none is allowed or that cannot be read, what is not audio, too much of it.
StatusOr<std::unique_ptr<AudioReader>> open_audio(const Json& item, int32_t sampling_rate, const MediaAccess& access,
                                                  const MediaLimits& limits);

class MultiModalRegistry final {
 public:
  // A family without media gets an empty registry. Errors: preprocessor_config.json's.
  static StatusOr<std::unique_ptr<MultiModalRegistry>> create(const ModelConfig& config);

  const AudioProcessor* audio() const { return audio_.get(); }  // null: the family takes none

  // The features of the one item of `multi_modal_data`, of which no more is decoded than one window. Errors, under its
  // name: no object, a modality that the family does not take, no item or several, open_audio's, more than one window
  // (says to use transcribe).
  StatusOr<std::shared_ptr<const EncoderFeatures>> process(const Json& multi_modal_data, const MediaAccess& access,
                                                           const MediaLimits& limits = {}) const;

 private:
  StatusOr<const Json*> audio_item(const Json& multi_modal_data) const;

  std::string family_;
  std::unique_ptr<AudioProcessor> audio_;
};

}  // namespace transept
