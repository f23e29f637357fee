#include "speech/audio_windows.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/strings.h"
#include "speech/window_segments.h"

namespace transept {
namespace {

// Samples read at a time: a second of most models' audio.
constexpr size_t kPieceSamples = 16000;
// Silence after the audio, in frames: openai-whisper pads with 30 s (transcribe.py, padding=N_SAMPLES).
constexpr int64_t kPaddingFrames = kWindowFrames;
// Rows that are dropped at once when a window begins behind them.
constexpr int64_t kDropRows = 2 * kWindowFrames;

}  // namespace

Status check_frames(const AudioProcessor& processor) {
  const int64_t rate = processor.sampling_rate();
  const LogMel* const log_mel = processor.log_mel();
  const int64_t hop =
      log_mel != nullptr ? log_mel->options().hop_length : rate / static_cast<int64_t>(kFramesPerSecond);
  const int64_t window = processor.max_samples().value_or(kWindowFrames * hop);
  if (hop * static_cast<int64_t>(kFramesPerSecond) != rate || window != kWindowFrames * hop) {
    return unimplemented("long audio needs frames of 0.01 s and windows of 30 s; this model has ", rate,
                         " samples a second, ", hop, " a frame and ", window, " a window");
  }
  return ok_status();
}

int64_t frame_width(const AudioProcessor& processor) {
  if (processor.log_mel() != nullptr) return processor.log_mel()->options().num_mel_bins;
  return processor.sampling_rate() / static_cast<int64_t>(kFramesPerSecond);
}

StatusOr<LogMel> voice_log_mel(const AudioProcessor& processor) {
  LogMelOptions mel;
  mel.sampling_rate = processor.sampling_rate();
  mel.hop_length = static_cast<int32_t>(frame_width(processor));
  mel.n_fft = mel.hop_length * 5 / 2;
  return LogMel::create(mel);
}

StatusOr<std::unique_ptr<AudioWindows>> AudioWindows::open(const AudioSource& source, const AudioProcessor& processor,
                                                           const Options& options) {
  std::unique_ptr<AudioWindows> windows(new AudioWindows(source, processor));
  RETURN_IF_ERROR(check_frames(processor));
  windows->width_ = frame_width(processor);
  windows->reader_options_ = {processor.sampling_rate(), options.max_seconds};
  windows->before_read_ = options.before_read;
  windows->piece_.resize(kPieceSamples);
  RETURN_IF_ERROR(windows->scan(options));
  return windows;
}

double AudioWindows::seconds() const {
  return static_cast<double>(num_samples_) / static_cast<double>(processor_.sampling_rate());
}

// Reads all once. Rows are kept as long as they are few; then only what must be known of all is.
Status AudioWindows::scan(const Options& options) {
  RETURN_IF_ERROR(rewind());
  info_ = reader_->info();
  std::unique_ptr<LogMel> voice_mel;
  std::unique_ptr<LogMelStream> voice_stream;
  std::unique_ptr<VoiceActivityDetector> detector;
  std::vector<float> voice_rows;
  int64_t voice_width = width_;
  if (options.find_voice) {
    if (processor_.log_mel() == nullptr) {
      ASSIGN_OR_RETURN(LogMel made, voice_log_mel(processor_));
      voice_mel = std::make_unique<LogMel>(std::move(made));
      voice_stream = std::make_unique<LogMelStream>(*voice_mel);
      voice_width = voice_mel->options().num_mel_bins;
    }
    detector = std::make_unique<VoiceActivityDetector>(static_cast<int>(voice_width));
  }
  const auto listen = [&](std::span<const float> rows) {
    for (size_t at = 0; detector != nullptr && at + static_cast<size_t>(voice_width) <= rows.size();
         at += static_cast<size_t>(voice_width)) {
      detector->push(rows.subspan(at, static_cast<size_t>(voice_width)), voice_);
    }
  };
  bool keep = true;
  num_samples_ = 0;
  while (!ended_) {
    const size_t before = buffer_.size();
    const int64_t samples_before = num_samples_;
    RETURN_IF_ERROR(read_more());
    if (voice_stream == nullptr) {
      listen(std::span(buffer_).subspan(before));
    } else {
      voice_rows.clear();
      voice_stream->push(std::span(piece_).first(static_cast<size_t>(num_samples_ - samples_before)), voice_rows);
      if (ended_) voice_stream->finish(voice_rows);
      listen(voice_rows);
    }
    const bool was_kept = keep;
    keep = keep && buffer_.size() * sizeof(float) <= options.max_kept_bytes;
    if (!keep) {
      first_row_ += static_cast<int64_t>(buffer_.size()) / width_;
      // A row of samples that is not whole yet stays.
      buffer_.erase(buffer_.begin(),
                    buffer_.end() - static_cast<std::ptrdiff_t>(buffer_.size() % static_cast<size_t>(width_)));
      if (was_kept) buffer_.shrink_to_fit();
    }
  }
  const int64_t hop = processor_.log_mel() != nullptr ? processor_.log_mel()->options().hop_length : width_;
  num_frames_ = num_samples_ / hop;
  max_ = stream_ != nullptr ? stream_->max() : 0;
  warning_ = reader_->warning();
  if (detector != nullptr) detector->finish(voice_);
  if (detector != nullptr) voice_.resize(static_cast<size_t>(num_frames_));
  if (!keep) return rewind();
  return ok_status();
}

Status AudioWindows::rewind() {
  ASSIGN_OR_RETURN(reader_, source_.open(reader_options_));
  stream_ = processor_.log_mel() != nullptr ? std::make_unique<LogMelStream>(*processor_.log_mel()) : nullptr;
  ended_ = false;
  first_row_ = 0;
  buffer_.clear();
  return ok_status();
}

// Appends the rows of the next piece of samples.
Status AudioWindows::read_more() {
  if (before_read_) RETURN_IF_ERROR(before_read_());
  ASSIGN_OR_RETURN(const size_t count, reader_->read(piece_));
  const std::span<const float> samples = std::span(piece_).first(count);
  num_samples_ += static_cast<int64_t>(count);
  ended_ = count == 0;
  if (stream_ == nullptr) {
    buffer_.insert(buffer_.end(), samples.begin(), samples.end());
  } else if (!ended_) {
    stream_->push(samples, buffer_);
  } else {
    stream_->finish(buffer_, kPaddingFrames * processor_.log_mel()->options().hop_length);
  }
  return ok_status();
}

StatusOr<std::vector<float>> AudioWindows::rows(int64_t begin, int64_t end) {
  const int64_t most = num_frames_ + (stream_ != nullptr ? kPaddingFrames : 0);
  CHECK(begin >= 0 && begin <= end && end <= most, "rows ", begin, " to ", end, " of ", most);
  if (begin < first_row_) RETURN_IF_ERROR(rewind());
  const int64_t samples = num_samples_;  // counted by the first pass
  while (!ended_ && first_row_ * width_ + static_cast<int64_t>(buffer_.size()) < end * width_) {
    RETURN_IF_ERROR(read_more());
    const int64_t surplus = begin - first_row_;
    if (surplus < kDropRows) continue;
    const int64_t dropped = std::min(surplus, static_cast<int64_t>(buffer_.size()) / width_);
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(dropped * width_));
    first_row_ += dropped;
  }
  num_samples_ = samples;
  if (first_row_ * width_ + static_cast<int64_t>(buffer_.size()) < end * width_) {
    return absl::DataLossError("the audio is shorter than when it was read first");
  }
  const auto first = buffer_.begin() + static_cast<std::ptrdiff_t>((begin - first_row_) * width_);
  return std::vector<float>(first, first + static_cast<std::ptrdiff_t>((end - begin) * width_));
}

std::shared_ptr<const EncoderFeatures> AudioWindows::features(std::span<const float> rows) const {
  const double seconds = static_cast<double>(rows.size()) / static_cast<double>(width_) / kFramesPerSecond;
  if (processor_.log_mel() == nullptr) return processor_.features(rows);
  return processor_.features_of_frames(rows, max_, seconds);
}

}  // namespace transept
