#include "speech/speech_spans.h"

#include <algorithm>
#include <cmath>

namespace transept {
namespace {

constexpr int64_t kCutSmoothing = 5;  // frames on both sides

int64_t frames_in(double seconds) {
  constexpr double kMost = 1e12;
  return seconds > 0 ? static_cast<int64_t>(std::llround(std::min(seconds * kVoiceFramesPerSecond, kMost))) : 0;
}

struct FrameSpan {
  int64_t begin, end;
};

// Runs that begin at `threshold` and end below `end_threshold`.
std::vector<FrameSpan> speech_runs(std::span<const FrameVoice> frames, const SpeechSpanOptions& options) {
  std::vector<FrameSpan> runs;
  bool speaks = false;
  for (int64_t i = 0; i < static_cast<int64_t>(frames.size()); ++i) {
    const double probability = frames[i].probability;
    if (!speaks && probability >= options.threshold) runs.push_back({i, i});
    speaks = speaks ? probability >= options.end_threshold : probability >= options.threshold;
    if (speaks) runs.back().end = i + 1;
  }
  return runs;
}

// `frames` between which the mean level is least; the middle of the window of smoothing. REQUIRES: begin < end.
int64_t quietest(std::span<const FrameVoice> frames, int64_t begin, int64_t end) {
  int64_t best = begin;
  double least = 0;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t from = std::max<int64_t>(i - kCutSmoothing, 0);
    const int64_t to = std::min(i + kCutSmoothing + 1, static_cast<int64_t>(frames.size()));
    double sum = 0;
    for (int64_t j = from; j < to; ++j) sum += frames[j].level;
    const double mean = sum / static_cast<double>(std::max<int64_t>(to - from, 1));
    if (i == begin || mean < least) {
      least = mean;
      best = i;
    }
  }
  return best;
}

}  // namespace

std::vector<SpeechSpan> find_speech(std::span<const FrameVoice> frames, const SpeechSpanOptions& options) {
  const int64_t padding = frames_in(options.padding_seconds);
  // Pauses count between runs before padding; then what padding makes touch is one.
  const int64_t least_pause = std::max(frames_in(options.min_silence_seconds), 2 * padding + 1);
  std::vector<FrameSpan> joined;
  for (const FrameSpan run : speech_runs(frames, options)) {
    if (run.end - run.begin < frames_in(options.min_speech_seconds)) continue;
    if (!joined.empty() && run.begin - joined.back().end < least_pause) {
      joined.back().end = run.end;
    } else {
      joined.push_back(run);
    }
  }
  std::vector<SpeechSpan> spans;
  for (const FrameSpan run : joined) {
    const int64_t begin = std::max<int64_t>(run.begin - padding, 0);
    const int64_t end = std::min(run.end + padding, static_cast<int64_t>(frames.size()));
    spans.push_back(
        {static_cast<double>(begin) / kVoiceFramesPerSecond, static_cast<double>(end) / kVoiceFramesPerSecond});
  }
  return spans;
}

std::vector<SpeechSpan> cut_windows(std::span<const SpeechSpan> spans, std::span<const FrameVoice> frames,
                                    const WindowCutOptions& options) {
  const double most = std::max(options.max_window_seconds, 1.0);
  std::vector<SpeechSpan> windows;
  for (SpeechSpan span : spans) {
    const bool joins = !windows.empty() && span.end - windows.back().start <= most &&
                       span.start - windows.back().end <= options.max_pause_seconds;
    if (joins) {
      windows.back().end = span.end;
      continue;
    }
    while (span.end - span.start > most) {
      const auto num_frames = static_cast<int64_t>(frames.size());
      const int64_t end = std::min(frames_in(span.start) + frames_in(most), num_frames);
      const int64_t begin = std::min(frames_in(span.start) + frames_in(most * 2 / 3), end - 1);
      if (begin < 0 || begin <= frames_in(span.start)) break;  // spans that are not of these frames
      const double cut = static_cast<double>(quietest(frames, begin, end)) / kVoiceFramesPerSecond;
      windows.push_back({span.start, cut});
      span.start = cut;
    }
    windows.push_back(span);
  }
  return windows;
}

}  // namespace transept
