// From samples to what a family's encoder takes: the parameters of preprocessor_config.json, once read. One window at a
// time; audio longer than that is cut by speech/. Immutable, so thread-safe.
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

  virtual int32_t sampling_rate() const = 0;  // of the samples that it takes, hertz
  // The most samples of one input. None: as many as the model has positions for.
  virtual std::optional<int64_t> max_samples() const { return std::nullopt; }
  // The most samples that give no more than so many positions of the encoder. A window of fixed length always gives the
  // same number, whatever it holds.
  virtual int64_t max_samples_of(int32_t num_positions) const = 0;
  // Positions of the encoder that so many samples give.
  virtual int64_t num_positions(int64_t num_samples) const = 0;
  // Null: the encoder takes samples as they are.
  virtual const LogMel* log_mel() const { return nullptr; }

  // One window of mono samples; at most max_samples(). Shorter ones are padded as the family's reference does it.
  virtual std::shared_ptr<const EncoderFeatures> features(std::span<const float> samples) const = 0;
  // The same from log-mel frames [n, num_mel_bins] cut from a longer stream (LogMelStream), whose greatest value is
  // `max`. REQUIRES: log_mel() != null, n at most a window's.
  virtual std::shared_ptr<const EncoderFeatures> features_of_frames(std::span<const float> frames, float max,
                                                                    double seconds) const;
};

// Whisper: log-mel of a window of fixed length, padded with zeros; the encoder halves the number of frames.
// Errors name preprocessor_config.json or config.json and the field: out of range, or at odds with each other. Without
// a preprocessor_config.json: Whisper's own values with config.json's num_mel_bins.
StatusOr<std::unique_ptr<AudioProcessor>> make_log_mel_processor(const ModelConfig& config);

// Moonshine: the samples themselves; three convolutions say how many positions they give.
StatusOr<std::unique_ptr<AudioProcessor>> make_waveform_processor(const ModelConfig& config);

}  // namespace transept
