#include "speech/decoding_rules.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>

#include "base/strings.h"

namespace transept {
namespace {

constexpr size_t kMostTemperatures = 1000;
constexpr size_t kMostClipTimes = 20'000;
constexpr double kMostSeconds = 1e9;

bool above(double value, const std::optional<double>& threshold) { return threshold.has_value() && value > *threshold; }
bool below(double value, const std::optional<double>& threshold) { return threshold.has_value() && value < *threshold; }

StatusOr<int64_t> parse_clip_time(std::string_view text) {
  text = trim(text);
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const std::string shown = str_cat("'", text.substr(0, 40), "'");
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(seconds)) {
    return field_error("clip_timestamps", str_cat(shown, " is not a number of seconds"));
  }
  if (seconds < 0) return field_error("clip_timestamps", str_cat(shown, " is negative"));
  return static_cast<int64_t>(std::nearbyint(std::min(seconds, kMostSeconds) * 100));
}

}  // namespace

bool needs_fallback(const WindowScores& scores, const DecodingThresholds& thresholds) {
  const bool improbable = below(scores.avg_logprob, thresholds.logprob);
  if (improbable && above(scores.no_speech_prob, thresholds.no_speech)) return false;
  return improbable || above(scores.compression_ratio, thresholds.compression_ratio);
}

bool is_silence(const WindowScores& scores, const DecodingThresholds& thresholds) {
  return above(scores.no_speech_prob, thresholds.no_speech) && !above(scores.avg_logprob, thresholds.logprob);
}

StatusOr<std::vector<double>> temperature_ladder(double temperature, std::optional<double> increment) {
  if (!std::isfinite(temperature) || temperature < 0) {
    return field_error("temperature", str_cat(temperature, " is not a temperature"));
  }
  if (!increment.has_value()) return std::vector<double>{temperature};
  if (!std::isfinite(*increment) || !(*increment > 0)) {
    return field_error("temperature_increment_on_fallback", str_cat(*increment, " is not above 0"));
  }
  constexpr double kEnd = 1 + 1e-6;
  const double steps = std::ceil((kEnd - temperature) / *increment);
  if (steps > static_cast<double>(kMostTemperatures)) {
    return field_error("temperature_increment_on_fallback",
                       str_cat(*increment, " makes more than ", kMostTemperatures, " temperatures"));
  }
  std::vector<double> ladder = {temperature};
  // As numpy counts: by the difference of the first two.
  const double difference = (temperature + *increment) - temperature;
  for (int i = 1; i < static_cast<int>(steps); ++i) ladder.push_back(temperature + i * difference);
  return ladder;
}

PreviousText::PreviousText(std::span<const int32_t> initial_prompt, bool carry, int64_t max_tokens,
                           std::span<const int32_t> hotwords)
    : carried_(hotwords.begin(), hotwords.end()), max_tokens_(std::max<int64_t>(max_tokens, 0)) {
  if (carry) {
    carried_.insert(carried_.end(), initial_prompt.begin(), initial_prompt.end());
  } else {
    append(initial_prompt);
  }
  num_carried_ = std::ssize(carried_);
  if (num_carried_ > max_tokens_) carried_.erase(carried_.begin(), carried_.end() - max_tokens_);
}

std::vector<int32_t> PreviousText::prompt() const {
  const int64_t room = max_tokens_ - num_carried_;
  const int64_t left = room > 0 ? std::min(room, num_tokens_) : std::max<int64_t>(num_tokens_ + room, 0);
  const int64_t size = std::min(left, max_tokens_);
  const int64_t carried = std::min(std::ssize(carried_), max_tokens_ - size);
  std::vector<int32_t> prompt(carried_.end() - carried, carried_.end());
  prompt.insert(prompt.end(), tokens_.end() - size, tokens_.end());
  return prompt;
}

void PreviousText::append(std::span<const int32_t> tokens) {
  num_tokens_ += std::ssize(tokens);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  const auto most = static_cast<size_t>(max_tokens_);
  if (tokens_.size() > most) tokens_.erase(tokens_.begin(), tokens_.end() - static_cast<int64_t>(most));
}

void PreviousText::reset() {
  tokens_.clear();
  num_tokens_ = 0;
}

StatusOr<std::vector<FrameRange>> parse_clip_timestamps(std::string_view text, int64_t content_frames) {
  std::vector<int64_t> frames;
  if (!text.empty()) {
    for (const std::string_view part : split(text, ',')) {
      if (frames.size() == kMostClipTimes) {
        return field_error("clip_timestamps", str_cat("more than ", kMostClipTimes, " times"));
      }
      ASSIGN_OR_RETURN(frames.emplace_back(), parse_clip_time(part));
    }
  }
  if (frames.empty()) frames.push_back(0);
  const size_t num_given = frames.size();
  if (frames.size() % 2 == 1) frames.push_back(content_frames);
  const auto seconds = [&](size_t i) { return static_cast<double>(frames[i]) / 100; };
  std::vector<FrameRange> ranges;
  for (size_t i = 0; i < frames.size(); i += 2) {
    if (i + 1 < num_given && frames[i] > frames[i + 1]) {
      return field_error("clip_timestamps", str_cat("a clip's end must not be before its start, and one goes from ",
                                                    seconds(i), " s to ", seconds(i + 1), " s"));
    }
    const FrameRange range = {frames[i], std::min(frames[i + 1], content_frames)};
    if (range.begin < range.end) ranges.push_back(range);
  }
  return ranges;
}

}  // namespace transept
