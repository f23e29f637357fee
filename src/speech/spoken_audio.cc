#include "speech/spoken_audio.h"

#include <algorithm>
#include <cmath>

#include "speech/silent_windows.h"
#include "speech/speech_spans.h"

namespace transept {
namespace {

// VadOptions of faster-whisper: min_silence_duration_ms, speech_pad_ms.
constexpr double kLeastPauseSeconds = 2, kPaddingSeconds = 0.4;

int64_t frame_at(double seconds) { return std::llround(seconds * kVoiceFramesPerSecond); }

// Times have two digits, as whisper rounds them.
double moved(double seconds, int64_t frames) {
  return std::round(seconds * kVoiceFramesPerSecond + static_cast<double>(frames)) / kVoiceFramesPerSecond;
}

}  // namespace

SpokenAudio::SpokenAudio(std::span<const FrameVoice> voice, std::span<const FrameRange> clips) {
  SpeechSpanOptions options;
  options.min_silence_seconds = kLeastPauseSeconds;
  options.padding_seconds = kPaddingSeconds;
  for (const FrameRange& clip : clips) {
    const int64_t length = clip.end - clip.begin, begin = num_frames_;
    std::vector<SpeechSpan> spans =
        find_speech(voice.subspan(static_cast<size_t>(clip.begin), static_cast<size_t>(length)), options);
    if (spans.empty() && length < kTooShortToJudge) {
      spans.push_back({0, static_cast<double>(length) / kVoiceFramesPerSecond});
    }
    for (const SpeechSpan& span : spans) {
      parts_.push_back({{clip.begin + frame_at(span.start), clip.begin + frame_at(span.end)}, num_frames_});
      num_frames_ = parts_.back().end();
    }
    clips_.push_back({begin, num_frames_});
  }
}

std::vector<FrameRange> SpokenAudio::parts(const FrameRange& joined) const {
  std::vector<FrameRange> found;
  for (const Part& part : parts_) {
    const int64_t begin = std::max(joined.begin, part.begin), end = std::min(joined.end, part.end());
    const int64_t moves = part.file.begin - part.begin;
    if (begin < end) found.push_back({begin + moves, end + moves});
  }
  return found;
}

int64_t SpokenAudio::file_frame(int64_t joined) const {
  if (parts_.empty()) return joined;
  const Part& part = part_at(static_cast<double>(joined) / kVoiceFramesPerSecond, /*is_end=*/true);
  return joined + part.file.begin - part.begin;
}

void SpokenAudio::restore_times(Segment& segment) const {
  if (parts_.empty()) return;
  const auto moves_at = [&](double seconds, bool is_end) {
    const Part& part = part_at(seconds, is_end);
    return part.file.begin - part.begin;
  };
  segment.seek += moves_at(static_cast<double>(segment.seek) / kVoiceFramesPerSecond, false);
  for (Word& word : segment.words) {
    const int64_t moves = moves_at((word.start + word.end) / 2, false);
    word.start = moved(word.start, moves);
    word.end = moved(word.end, moves);
  }
  const double start = segment.start, end = segment.end;
  segment.start = segment.words.empty() ? moved(start, moves_at(start, false)) : segment.words.front().start;
  segment.end = segment.words.empty() ? moved(end, moves_at(end, true)) : segment.words.back().end;
}

const SpokenAudio::Part& SpokenAudio::part_at(double seconds, bool is_end) const {
  const int64_t frame = frame_at(seconds);
  const auto found =
      std::ranges::find_if(parts_, [&](const Part& part) { return is_end ? frame <= part.end() : frame < part.end(); });
  return found == parts_.end() ? parts_.back() : *found;
}

}  // namespace transept
