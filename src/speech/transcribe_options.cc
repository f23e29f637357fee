#include "speech/transcribe_options.h"

#include <cmath>

#include "base/strings.h"

namespace transept {
namespace {

constexpr int32_t kMaxBeams = 64, kMaxBestOf = 64, kMaxBatch = 256;
constexpr double kMostSeconds = 1e7, kMostPatience = 100;

Status check_number(std::string_view name, double value, double min, double max) {
  if (value >= min && value <= max) return ok_status();
  return field_error(name, str_cat(name, " must be a number from ", min, " to ", max, ", not ", value));
}

Status check_optional(std::string_view name, const std::optional<double>& value, double min, double max) {
  return value.has_value() ? check_number(name, *value, min, max) : ok_status();
}

}  // namespace

Status check_transcribe_options(const TranscribeOptions& options) {
  if (options.task != "transcribe" && options.task != "translate") {
    return field_error("task", str_cat("task \"", options.task, "\" is unknown; one of transcribe, translate"));
  }
  RETURN_IF_ERROR(check_number("sure_language", options.sure_language, 0, 1));
  RETURN_IF_ERROR(check_number("temperature", options.temperature, 0, 2));
  if (options.temperature_increment.has_value()) {
    const Status ladder = temperature_ladder(options.temperature, options.temperature_increment).status();
    if (!ladder.ok()) return with_param(ladder, "temperature_increment_on_fallback");
  }
  RETURN_IF_ERROR(check_number("beam_size", options.beam_size.value_or(1), 1, kMaxBeams));
  RETURN_IF_ERROR(check_number("best_of", options.best_of, 1, kMaxBestOf));
  RETURN_IF_ERROR(check_number("batch_size", options.batch_size, 1, kMaxBatch));
  if (const double patience = options.patience.value_or(1); !(patience > 0 && patience <= kMostPatience)) {
    return field_error("patience", str_cat("patience must be above 0 and up to ", kMostPatience, ", not ", patience));
  }
  if (options.patience.has_value() && options.beam_size == 1) {
    return field_error("patience", "patience is of a beam search: it needs a beam_size above 1");
  }
  // openai-whisper, decoding.py, _verify_options.
  RETURN_IF_ERROR(check_optional("length_penalty", options.length_penalty, 0, 1));
  RETURN_IF_ERROR(check_optional("compression_ratio_threshold", options.thresholds.compression_ratio, -1e9, 1e9));
  RETURN_IF_ERROR(check_optional("logprob_threshold", options.thresholds.logprob, -1e9, 1e9));
  RETURN_IF_ERROR(check_optional("no_speech_threshold", options.thresholds.no_speech, -1e9, 1e9));
  RETURN_IF_ERROR(parse_clip_timestamps(options.clip_timestamps, 0).status());
  if (!(options.max_audio_seconds > 0 && options.max_audio_seconds <= kMostSeconds)) {
    return field_error("max_audio_seconds", "max_audio_seconds must be above 0");
  }
  if (options.hallucination_silence_threshold.has_value()) {
    RETURN_IF_ERROR(check_number("hallucination_silence_threshold", *options.hallucination_silence_threshold, 0, 1e9));
    if (!options.word_timestamps) {
      return field_error("hallucination_silence_threshold", "hallucination_silence_threshold needs word_timestamps");
    }
  }
  return ok_status();
}

}  // namespace transept
