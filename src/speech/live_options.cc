#include "speech/live_options.h"

#include <array>
#include <cmath>

#include "core/speech_languages.h"
#include "speech/characters.h"

namespace transept {
namespace {

constexpr double kMostItemSeconds = 14400;  // a file of 16-bit samples at any rate stays below 2 GiB
constexpr int32_t kMostPaddingMs = 10000;

constexpr std::array<std::pair<LiveDelay, std::string_view>, 5> kDelays = {{
    {LiveDelay::kMinimal, "minimal"},
    {LiveDelay::kLow, "low"},
    {LiveDelay::kMedium, "medium"},
    {LiveDelay::kHigh, "high"},
    {LiveDelay::kXhigh, "xhigh"},
}};

Status check_range(std::string_view name, double value, double min, double max) {
  if (value >= min && value <= max) return ok_status();
  return field_error(name, str_cat(name, " must be a number from ", min, " to ", max, ", not ", value));
}

// A model without language tokens knows English alone.
Status check_language(const SpeechModel& model, const std::string& language, std::string_view field) {
  if (model.tokens != nullptr) return model.tokens->language_token(language, field).status();
  if (speech_language_code(language) == "en") return ok_status();
  return field_error(field, str_cat(field, ": this model knows English alone"));
}

}  // namespace

std::optional<LiveDelay> parse_live_delay(std::string_view name) {
  for (const auto& [delay, known] : kDelays) {
    if (name == known) return delay;
  }
  return std::nullopt;
}

std::string_view live_delay_name(LiveDelay delay) {
  for (const auto& [known, name] : kDelays) {
    if (delay == known) return name;
  }
  return "";
}

// docs/decisions/0068-sure-words-sooner.md has the table that these are of.
LivePolicy live_policy(LiveDelay delay) {
  constexpr float kNever = INFINITY, kAlways = -INFINITY;
  switch (delay) {
    case LiveDelay::kMinimal: return {.agreement = {kNever, -2, kAlways}, .hop_seconds = 0.3};
    case LiveDelay::kLow: return {.agreement = {kNever, -2, kAlways}};
    case LiveDelay::kMedium: return {.agreement = {kNever, -0.5f, -1, kAlways}};
    case LiveDelay::kHigh: return {.agreement = {kNever, -0.2f, -0.5f, -1, -1, -1.5f, -1.5f, kAlways}};
    case LiveDelay::kXhigh: return {.agreement = {kNever}, .has_hypotheses = false};
  }
  return {};
}

Status check_live_options(const LiveOptions& options, const SpeechModel& model) {
  RETURN_IF_ERROR(check_range("sampling_rate", options.sampling_rate, kMinLiveRate, kMaxLiveRate));
  if (!options.language.empty()) RETURN_IF_ERROR(check_language(model, options.language, "language"));
  for (const std::string& language : options.languages) {
    RETURN_IF_ERROR(check_language(model, language, "languages"));
  }
  const bool takes_text = model.tokens != nullptr && model.tokens->start_of_previous.has_value();
  if (!takes_text && !strip_space(options.prompt).empty()) {
    return field_error("prompt", "prompt: this model takes no text before a window");
  }
  if (!takes_text && !strip_space(options.hotwords).empty()) {
    return field_error("hotwords", "hotwords: this model takes no text before a window");
  }
  if (!(options.max_item_seconds > 0 && options.max_item_seconds <= kMostItemSeconds)) {
    return field_error("max_item_seconds", str_cat("max_item_seconds must be above 0, and ", kMostItemSeconds,
                                                   " at most, not ", options.max_item_seconds));
  }
  if (!options.turn_detection.has_value()) return ok_status();
  const LiveTurnDetection& turns = *options.turn_detection;
  RETURN_IF_ERROR(check_range("turn_detection.threshold", turns.threshold, 0, 1));
  RETURN_IF_ERROR(check_range("turn_detection.prefix_padding_ms", turns.prefix_padding_ms, 0, kMostPaddingMs));
  return check_range("turn_detection.silence_duration_ms", turns.silence_duration_ms, 20, kMostPaddingMs);
}

TranscribeOptions live_transcribe_options(const TranscribeOptions& base, const LiveOptions& options,
                                          const SpeechModel& model) {
  TranscribeOptions made = base;
  if (model.tokens != nullptr) {
    made.language = options.language;
    if (options.language.empty()) made.languages = options.languages;
  }
  made.initial_prompt = strip_space(options.prompt);
  made.hotwords = strip_space(options.hotwords);
  made.cache_salt = options.cache_salt;
  made.token_logprobs = options.wants_logprobs;
  return made;
}

}  // namespace transept
