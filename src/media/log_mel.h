// Log-mel spectrograms as Whisper's front end makes them (openai-whisper, audio.py, log_mel_spectrogram; transformers,
// WhisperFeatureExtractor): periodic Hann window, frames centred with reflected edges, power spectrum, Slaney mel
// filters, log10 of at least 1e-10, then max(x, max - 8) and (x + 4) / 4. All tables are computed from the parameters.
//
// LogMel is immutable and may be used by many threads; a LogMelStream belongs to one thread at a time and borrows its
// LogMel. Raw frames are [num_frames, num_mel_bins] of log10 values before normalising; what models take is
// [num_mel_bins, num_frames].
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
  // Errors: an option out of range, by name.
  static StatusOr<LogMel> create(const LogMelOptions& options, Isa isa = detect_isa());

  const LogMelOptions& options() const;

  // Of num_samples samples: the last frame of the transform is dropped, so one each whole hop.
  int64_t num_frames(int64_t num_samples) const;

  // One window alone: `samples` cut or padded with zeros to num_samples, normalised by its own maximum.
  // out [num_mel_bins, num_frames(num_samples)].
  void window(std::span<const float> samples, int64_t num_samples, std::span<float> out) const;

  // Frames cut from a longer stream: frames [n, num_mel_bins] raw, n <= num_frames; `max` the greatest raw value of the
  // whole audio. out [num_mel_bins, num_frames]; columns past the n frames are 0 (openai-whisper's pad_or_trim).
  void normalize(std::span<const float> frames, float max, int64_t num_frames, std::span<float> out) const;

 private:
  friend class LogMelStream;
  explicit LogMel(std::shared_ptr<const LogMelTables> tables);
  std::shared_ptr<const LogMelTables> tables_;
};

// The frames of audio of any length, as its samples come, in constant memory.
//   LogMelStream stream(log_mel);
//   while (...) stream.push(samples, frames);   // appends what has become certain
//   stream.finish(frames, 480000);              // 30 s of zeros after the audio, then the rest
class LogMelStream final {
 public:
  explicit LogMelStream(const LogMel& log_mel);

  // Appends raw frames to `frames`: [k, num_mel_bins] for the k that the samples so far decide.
  void push(std::span<const float> samples, std::vector<float>& frames);

  // Ends the audio after num_zeros more samples of silence, with reflected edge, and appends the remaining frames. In
  // all there are num_frames(samples pushed + num_zeros). Nothing may be pushed afterwards.
  void finish(std::vector<float>& frames, int64_t num_zeros = 0);

  int64_t num_samples() const { return num_samples_; }  // pushed so far

  // The greatest raw value of all frames so far: of the whole audio, after finish(). -10 before the first.
  float max() const { return max_; }

 private:
  bool mirror_edges();
  void emit(std::vector<float>& frames);
  void emit_silence(std::vector<float>& frames);
  void append_frames(const float* samples, int64_t count, std::vector<float>& frames);

  std::shared_ptr<const LogMelTables> tables_;
  std::vector<float> pending_;  // from the first sample of the next frame on; its left edge once started_
  std::vector<float> scratch_;
  int64_t num_samples_ = 0;
  int64_t num_frames_ = 0;  // given so far
  bool started_ = false;
  bool finished_ = false;
  float max_ = -10;
};

}  // namespace transept
