#include "speech/window_segments.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "speech/characters.h"

namespace transept {
namespace {

// What merge_punctuations moves by default; a word that is part of this text is no word (transcribe.py).
constexpr std::string_view kPunctuations = "\"'“¿([{-\"'.。,，!！?？:：”)]}、";

class WindowCutter final {
 public:
  explicit WindowCutter(const WindowTokens& window) : window_(window) {}

  bool is_timestamp(size_t i) const { return window_.tokens[i] >= window_.timestamp_begin; }

  // Timestamp steps from the window's beginning, in [0, 30 s]; 0 for text.
  int64_t position(size_t i) const {
    const int64_t position = int64_t{window_.tokens[i]} - window_.timestamp_begin;
    return std::clamp<int64_t>(position, 0, kWindowFrames / window_.input_stride);
  }

  double seconds(int64_t position) const {
    return static_cast<double>(position) * (static_cast<double>(window_.input_stride) / kFramesPerSecond);
  }

  bool ends_with_single_timestamp() const {
    const size_t size = window_.tokens.size();
    return size >= 2 && !is_timestamp(size - 2) && is_timestamp(size - 1);
  }

  // The segment of tokens [begin, end), `from` to `to` seconds after the window's beginning.
  Segment segment(size_t begin, size_t end, double from, double to) const {
    const double offset = static_cast<double>(window_.seek) / kFramesPerSecond;
    const auto tokens = window_.tokens.subspan(begin, end - begin);
    Segment segment;
    segment.seek = window_.seek;
    segment.start = offset + from;
    segment.end = offset + std::max(from, to);
    segment.tokens.assign(tokens.begin(), tokens.end());
    if (!window_.logprobs.empty()) {
      const auto logprobs = window_.logprobs.subspan(begin, end - begin);
      segment.token_logprobs.assign(logprobs.begin(), logprobs.end());
    }
    return segment;
  }

  // Where one segment ends and the next begins: behind the first of two timestamps that follow each other.
  std::vector<size_t> cuts() const {
    std::vector<size_t> cuts;
    for (size_t i = 1; i < window_.tokens.size(); ++i) {
      if (is_timestamp(i - 1) && is_timestamp(i)) cuts.push_back(i);
    }
    return cuts;
  }

  Segment whole() const {
    double duration = static_cast<double>(window_.segment_size) / kFramesPerSecond;
    for (size_t i = window_.tokens.size(); i-- > 0;) {
      if (!is_timestamp(i)) continue;
      if (position(i) > 0) duration = seconds(position(i));
      break;
    }
    return segment(0, window_.tokens.size(), 0, duration);
  }

 private:
  const WindowTokens& window_;
};

int64_t frame_of(double seconds) {
  constexpr double kMostFrames = 1e15;
  return static_cast<int64_t>(std::nearbyint(std::clamp(seconds * kFramesPerSecond, -kMostFrames, kMostFrames)));
}

// Where the next window begins, and what of this one stays, once its words are known.
class WindowSettler final {
 public:
  WindowSettler(const WindowPlace& place, WindowWords& words)
      : place_(place),
        words_(words),
        segments_(words.window.segments),
        begin_(static_cast<double>(place.seek) / kFramesPerSecond),
        end_(static_cast<double>(place.seek + kWindowFrames) / kFramesPerSecond) {}

  void seek_to_last_word() {
    const double last = last_end(segments_, begin_);
    if (!words_.window.single_timestamp_ending && last > begin_) words_.window.next_seek = frame_of(last);
  }

  void skip_silence(double threshold) {
    const double last = last_end(segments_, begin_);
    if (!words_.window.single_timestamp_ending && last > begin_ && !(end_ - last > threshold)) {
      words_.window.next_seek = place_.seek + place_.segment_size;
    }
    const Segment* first = next_words_segment(segments_);
    if (is_segment_anomaly(first) && first->start - begin_ > threshold) {
      words_.window.next_seek = place_.seek + frame_of(first->start - begin_);
      words_.skipped = true;
      segments_.clear();
      return;
    }
    drop_from_hallucination(threshold);
  }

 private:
  // The first suspicious segment with silence, or more of its kind, on both sides goes, and all after it.
  void drop_from_hallucination(double threshold) {
    double last_speech = words_.last_speech_timestamp;
    for (size_t i = 0; i < segments_.size(); ++i) {
      const Segment& segment = segments_[i];
      if (segment.words.empty()) continue;
      if (is_segment_anomaly(&segment) && is_alone(i, last_speech, threshold)) {
        words_.window.next_seek = frame_of(std::max(begin_ + 1, segment.start));
        const double content_end = static_cast<double>(place_.content_frames) / kFramesPerSecond;
        if (content_end - segment.end < threshold) words_.window.next_seek = place_.content_frames;
        segments_.erase(segments_.begin() + static_cast<int64_t>(i), segments_.end());
        return;
      }
      last_speech = segment.end;
    }
  }

  bool is_alone(size_t i, double last_speech, double threshold) const {
    constexpr double kNearBorderSeconds = 2.0;
    const Segment& segment = segments_[i];
    const Segment* next = next_words_segment(std::span<const Segment>(segments_).subspan(i + 1));
    const double content_end = begin_ + static_cast<double>(place_.segment_size) / kFramesPerSecond;
    const double next_start = next != nullptr ? next->words.front().start : content_end;
    const bool silence_before = segment.start - last_speech > threshold || segment.start < threshold ||
                                segment.start - begin_ < kNearBorderSeconds;
    const bool silence_after =
        next_start - segment.end > threshold || is_segment_anomaly(next) || end_ - segment.end < kNearBorderSeconds;
    return silence_before && silence_after;
  }

  const WindowPlace& place_;
  WindowWords& words_;
  std::vector<Segment>& segments_;
  double begin_, end_;  // of the window, in seconds; the end as if it held 30 s of audio
};

}  // namespace

WindowSegments window_segments(const WindowTokens& window) {
  const WindowCutter cutter(window);
  const int64_t whole_window = std::max<int64_t>(window.segment_size, 1);
  WindowSegments result;
  result.single_timestamp_ending = cutter.ends_with_single_timestamp();
  result.next_seek = window.seek + whole_window;
  if (window.tokens.empty()) return result;
  std::vector<size_t> cuts = cutter.cuts();
  if (cuts.empty()) {
    result.segments.push_back(cutter.whole());
    return result;
  }
  if (result.single_timestamp_ending) cuts.push_back(window.tokens.size());
  size_t begin = 0;
  for (const size_t end : cuts) {
    result.segments.push_back(
        cutter.segment(begin, end, cutter.seconds(cutter.position(begin)), cutter.seconds(cutter.position(end - 1))));
    begin = end;
  }
  const int64_t advance = cutter.position(begin - 1) * window.input_stride;
  if (!result.single_timestamp_ending && advance > 0) result.next_seek = window.seek + advance;
  return result;
}

double last_end(std::span<const Segment> segments, double otherwise) {
  for (size_t i = segments.size(); i-- > 0;) {
    if (!segments[i].words.empty()) return segments[i].words.back().end;
  }
  return segments.empty() ? otherwise : segments.back().end;
}

const Segment* next_words_segment(std::span<const Segment> segments) {
  const auto found = std::find_if(segments.begin(), segments.end(), [](const Segment& s) { return !s.words.empty(); });
  return found == segments.end() ? nullptr : &*found;
}

double word_anomaly_score(const Word& word) {
  constexpr double kImprobable = 0.15, kShortSeconds = 0.133, kLongSeconds = 2.0;
  const double duration = word.end - word.start;
  double score = word.probability < kImprobable ? 1.0 : 0.0;
  if (duration < kShortSeconds) score += (kShortSeconds - duration) * 15;
  if (duration > kLongSeconds) score += duration - kLongSeconds;
  return score;
}

bool is_segment_anomaly(const Segment* segment) {
  constexpr int kNumWords = 8;
  if (segment == nullptr || segment->words.empty()) return false;
  double score = 0;
  int num_words = 0;
  for (const Word& word : segment->words) {
    if (num_words == kNumWords) break;
    if (kPunctuations.find(word.word) != std::string_view::npos) continue;
    score += word_anomaly_score(word);
    ++num_words;
  }
  return score >= 3 || score + 0.01 >= num_words;
}

void settle_words(const WindowPlace& place, const double* hallucination_silence_threshold, WindowWords& words) {
  WindowSettler settler(place, words);
  settler.seek_to_last_word();
  if (hallucination_silence_threshold != nullptr) settler.skip_silence(*hallucination_silence_threshold);
  if (!words.skipped) {
    words.last_speech_timestamp = last_end(words.window.segments, words.last_speech_timestamp);
  }
  int64_t& next_seek = words.window.next_seek;
  if (next_seek <= place.seek) next_seek = place.seek + std::max<int64_t>(place.segment_size, 1);
}

void clear_empty_segments(std::span<Segment> segments) {
  for (Segment& segment : segments) {
    if (segment.start != segment.end && !strip_space(segment.text).empty()) continue;
    segment.text.clear();
    segment.tokens.clear();
    segment.token_logprobs.clear();
    segment.words.clear();
  }
}

}  // namespace transept
