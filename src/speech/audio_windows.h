// Cuts one audio file into windows, in memory that does not grow with its length. A first pass finds the length, the
// greatest log-mel value (which normalises every window) and, if requested, the voice of every frame. Later reads
// decode the audio again, from its beginning when the caller goes back; the rows of the first pass are kept if they fit
// in max_kept_bytes. Owned by one transcription. Not thread-safe, but for features().
//
// A frame is 0.01 s.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "core/encoder_features.h"
#include "media/audio_reader.h"
#include "media/log_mel.h"
#include "multimodal/audio_processor.h"
#include "speech/transcription.h"
#include "speech/voice_activity.h"

namespace transept {

// Errors: kUnimplemented, if the front end's frames are not 0.01 s or its windows not 30 s.
Status check_frames(const AudioProcessor& processor);
// Floats of a frame: mel bins, or samples.
int64_t frame_width(const AudioProcessor& processor);
// The log-mel stage that a model of samples does not have itself, for the voice detector.
StatusOr<LogMel> voice_log_mel(const AudioProcessor& processor);

class AudioWindows final {
 public:
  struct Options {
    double max_seconds = 14400;
    bool find_voice = false;
    size_t max_kept_bytes = size_t{64} << 20;  // of the first pass: 35 minutes of 80 mel bins
    // Called before each piece of 16,000 samples, in every pass; its error ends the reading.
    std::function<Status()> before_read = {};
  };

  // Runs the first pass. Borrows the processor. Errors: check_frames'; AudioReader's; before_read's.
  static StatusOr<std::unique_ptr<AudioWindows>> open(const AudioSource& source, const AudioProcessor& processor,
                                                      const Options& options);

  int64_t num_frames() const { return num_frames_; }  // whole frames, without padding
  double seconds() const;
  const AudioInfo& info() const { return info_; }
  const std::string& warning() const { return warning_; }       // of the first pass (AudioReader::warning)
  std::span<const FrameVoice> voice() const { return voice_; }  // [num_frames]; empty without find_voice

  // Returns rows [begin, end) as the processor takes them: log-mel values or samples, [end - begin, row_width()].
  // REQUIRES: 0 <= begin <= end <= num_frames(); for log-mel values end may be 3000 more, for the silence after the
  // audio. Errors: kDataLoss, if the audio is shorter than in the first pass; AudioReader's; before_read's.
  StatusOr<std::vector<float>> rows(int64_t begin, int64_t end);
  // Returns the encoder's features of one window: at most 3000 rows of rows(). Thread-safe.
  std::shared_ptr<const EncoderFeatures> features(std::span<const float> rows) const;
  int64_t row_width() const { return width_; }                                  // mel bins, or samples of a frame
  size_t num_kept_bytes() const { return buffer_.capacity() * sizeof(float); }  // of rows in memory

 private:
  AudioWindows(const AudioSource& source, const AudioProcessor& processor) : source_(source), processor_(processor) {}

  Status scan(const Options& options);
  Status rewind();
  Status read_more();

  AudioSource source_;
  const AudioProcessor& processor_;
  AudioReader::Options reader_options_;
  std::function<Status()> before_read_;
  int64_t width_ = 0;  // floats per row
  int64_t num_samples_ = 0, num_frames_ = 0;
  float max_ = 0;
  AudioInfo info_;
  std::string warning_;
  std::vector<FrameVoice> voice_;

  // The pass that windows are cut from; the first one, if its rows were kept.
  std::unique_ptr<AudioReader> reader_;
  std::unique_ptr<LogMelStream> stream_;
  bool ended_ = false;
  int64_t first_row_ = 0;      // of buffer_
  std::vector<float> buffer_;  // [rows, width_]
  std::vector<float> piece_;   // the samples of one read
};

}  // namespace transept
