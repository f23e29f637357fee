// Computes log-mel spectrograms as Whisper's front end does (openai-whisper, audio.py, log_mel_spectrogram;
// transformers, WhisperFeatureExtractor): periodic Hann window, frames centred with reflected edges, power spectrum,
// Slaney mel filters, log10 of at least 1e-10, then max(x, max - 8) and (x + 4) / 4. Computes all tables from the
// parameters.
//
// LogMel is immutable, so thread-safe; copies share the tables. A LogMelStream shares the tables of its LogMel and
// belongs to one thread at a time. Raw frames are [num_frames, num_mel_bins], log10 values before normalisation; models
// take [num_mel_bins, num_frames].
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/isa.h"
#include "base/status.h"
#include "media/log_mel_options.h"

namespace transept {

struct LogMelTables;

class LogMel final {
 public:
  // Errors: kInvalidArgument for an option out of range, with its name as param. `isa` selects the kernel.
  static StatusOr<LogMel> create(const LogMelOptions& options, Isa isa = detect_isa());

  const LogMelOptions& options() const;

  // Returns the frames of num_samples samples: one per whole hop, since the reference drops the transform's last frame.
  int64_t num_frames(int64_t num_samples) const;

  // Computes one window: cuts `samples` to num_samples or pads them with zeros, and normalises by the window's own
  // maximum. Fills out [num_mel_bins, num_frames(num_samples)]. REQUIRES (CHECK): num_samples >= 0; the size of `out`.
  void window(std::span<const float> samples, int64_t num_samples, std::span<float> out) const;

  // Normalises frames that were cut from a longer stream: `frames` is [n, num_mel_bins] raw with n <= num_frames, `max`
  // the greatest raw value of the whole audio. Fills out [num_mel_bins, num_frames]; columns after the n frames are 0
  // (openai-whisper's pad_or_trim). REQUIRES (CHECK): these sizes.
  void normalize(std::span<const float> frames, float max, int64_t num_frames, std::span<float> out) const;

 private:
  friend class LogMelStream;
  explicit LogMel(std::shared_ptr<const LogMelTables> tables);
  std::shared_ptr<const LogMelTables> tables_;
};

// Computes the frames of audio of any length, while its samples arrive, in constant memory.
//   LogMelStream stream(log_mel);
//   while (...) stream.push(samples, frames);   // appends the frames that are complete
//   stream.finish(frames, 480000);              // 30 s of zeros after the audio, then the rest
class LogMelStream final {
 public:
  // `log_mel` need not outlive it.
  explicit LogMelStream(const LogMel& log_mel);

  // Appends the raw frames, [k, num_mel_bins], that the samples so far determine. REQUIRES (CHECK): not finished.
  void push(std::span<const float> samples, std::vector<float>& frames);

  // Ends the audio after num_zeros more samples of silence, with a reflected edge, and appends the remaining frames.
  // The total is num_frames(samples pushed + num_zeros). REQUIRES (CHECK): not finished; num_zeros >= 0.
  void finish(std::vector<float>& frames, int64_t num_zeros = 0);

  int64_t num_samples() const { return num_samples_; }  // so far; after finish() with its zeros

  // Returns the greatest raw value of all frames so far; of the whole audio after finish(); -10 before the first frame.
  float max() const { return max_; }

 private:
  bool mirror_edges();
  void emit(std::vector<float>& frames);
  void emit_silence(std::vector<float>& frames);
  void append_frames(const float* samples, int64_t count, std::vector<float>& frames);
  void transform(const float* samples, int64_t count, float* out);

  std::shared_ptr<const LogMelTables> tables_;
  std::vector<float> pending_;  // from the first sample of the next frame; with the left edge once started_
  std::vector<float> scratch_;
  int64_t num_samples_ = 0;
  int64_t num_frames_ = 0;  // appended so far
  bool started_ = false;
  bool finished_ = false;
  std::vector<float> silent_frame_;  // what zeros give; empty: not known yet
  float max_ = -10;
};

}  // namespace transept
