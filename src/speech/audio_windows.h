// The windows of one audio file, in memory that does not grow with its length: a first pass over the audio finds how
// long it is, the greatest log-mel value (which normalises every window) and, if asked, where there is speech; after
// that windows are cut from a second pass, which begins again when the caller goes back. Audio of a few minutes is kept
// from the first pass. Not thread-safe.
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

class AudioWindows final {
 public:
  struct Options {
    double max_seconds = 14400;
    bool find_voice = false;
    size_t max_kept_bytes = size_t{64} << 20;  // of the first pass
    std::function<Status()> before_read = {};  // of each second of audio, in every pass; an error ends the reading
  };

  // The first pass. Borrows the processor. Errors: AudioReader's; a front end whose frames are not 0.01 s;
  // before_read's.
  static StatusOr<std::unique_ptr<AudioWindows>> open(const AudioSource& source, const AudioProcessor& processor,
                                                      const Options& options);

  int64_t num_frames() const { return num_frames_; }  // whole ones, padding aside
  double seconds() const;
  const AudioInfo& info() const { return info_; }
  const std::string& warning() const { return warning_; }       // of the audio; "": none
  std::span<const FrameVoice> voice() const { return voice_; }  // [num_frames]; empty unless asked for

  // Rows [begin, end) as the processor takes them: log-mel values, or samples. 0 <= begin <= end <= num_frames(); of
  // log-mel values also the 3000 rows after these, of the silence that follows the audio.
  // Errors: the audio's, which the first pass had not (a file that changes); before_read's.
  StatusOr<std::vector<float>> rows(int64_t begin, int64_t end);
  // The encoder's features of one window's rows, as rows() gave them; at most 3000. Thread-safe.
  std::shared_ptr<const EncoderFeatures> features(std::span<const float> rows) const;
  int64_t row_width() const { return width_; }
  size_t num_kept_bytes() const { return buffer_.capacity() * sizeof(float); }  // rows at hand

 private:
  AudioWindows(const AudioSource& source, const AudioProcessor& processor) : source_(source), processor_(processor) {}

  Status scan(const Options& options);
  Status rewind();
  Status read_more();

  AudioSource source_;
  const AudioProcessor& processor_;
  AudioReader::Options reader_options_;
  std::function<Status()> before_read_;
  int64_t width_ = 0;  // floats a row
  int64_t num_samples_ = 0, num_frames_ = 0;
  float max_ = 0;
  AudioInfo info_;
  std::string warning_;
  std::vector<FrameVoice> voice_;

  // The pass that windows are cut from.
  std::unique_ptr<AudioReader> reader_;
  std::unique_ptr<LogMelStream> stream_;
  bool ended_ = false;
  int64_t first_row_ = 0;      // of buffer_
  std::vector<float> buffer_;  // [rows, width_]
  std::vector<float> piece_;   // samples as they are read
};

}  // namespace transept
