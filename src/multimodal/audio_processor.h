// Converts samples to the input of a family's encoder, by the parameters of preprocessor_config.json. Takes one window
// at a time; speech/ cuts longer audio. MultiModalRegistry owns it. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "core/encoder_features.h"
#include "core/model_config.h"
#include "media/log_mel.h"

namespace transept {

class AudioProcessor {
 public:
  virtual ~AudioProcessor() = default;

  virtual int32_t sampling_rate() const = 0;  // of the input samples, hertz
  // The most samples of one input. None: the model's positions are the only limit.
  virtual std::optional<int64_t> max_samples() const { return std::nullopt; }
  // Returns the most samples that give at most `num_positions` encoder positions. A family with a window of fixed
  // length returns that length: its number of positions does not depend on the samples.
  virtual int64_t max_samples_of(int32_t num_positions) const = 0;
  // Returns the number of encoder positions for num_samples.
  virtual int64_t num_positions(int64_t num_samples) const = 0;
  // Returns the encoder positions that features of this shape have. None: features() gives no such shape.
  virtual std::optional<int64_t> positions_of(std::span<const int64_t> shape) const = 0;
  // Null: the encoder takes raw samples.
  virtual const LogMel* log_mel() const { return nullptr; }

  // Returns the features of one window of mono samples: log-mel [num_mel_bins, num_frames], or samples [num_samples].
  // Pads short input as the family's reference does. REQUIRES: at most max_samples().
  virtual std::shared_ptr<const EncoderFeatures> features(std::span<const float> samples) const = 0;
  // Returns the same from raw log-mel frames [n, num_mel_bins] of a longer stream (LogMelStream). `max` is the greatest
  // raw value of the whole audio; `seconds` is the length of this part. REQUIRES: log_mel() != null, n at most a
  // window's frames.
  virtual std::shared_ptr<const EncoderFeatures> features_of_frames(std::span<const float> frames, float max,
                                                                    double seconds) const;
};

// Makes Whisper's processor: log-mel of a window of fixed length, padded with zeros; the encoder halves the number of
// frames. Without a preprocessor_config.json it takes Whisper's own values with num_mel_bins of config.json.
// Errors (kInvalidArgument) name the file and the field: a value out of range, two that contradict each other, or a
// window of more than 2^26 values.
StatusOr<std::unique_ptr<AudioProcessor>> make_log_mel_processor(const ModelConfig& config);

// Makes Moonshine's processor: it passes the samples on, and computes the positions that the encoder's three
// convolutions give (transformers, modeling_moonshine.py, MoonshineEncoder). Errors name preprocessor_config.json and
// the field: a sampling_rate out of range; do_normalize, which is not supported.
StatusOr<std::unique_ptr<AudioProcessor>> make_waveform_processor(const ModelConfig& config);

}  // namespace transept
