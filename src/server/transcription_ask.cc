#include "server/transcription_ask.h"

#include <algorithm>
#include <cmath>

#include "base/quoted.h"
#include "core/speech_languages.h"
#include "speech/characters.h"

namespace transept {
namespace {

// As the field table spells them.
TranscriptionFormat format_of(const std::optional<std::string>& name) {
  if (name == "text") return TranscriptionFormat::kText;
  if (name == "srt") return TranscriptionFormat::kSrt;
  if (name == "vtt") return TranscriptionFormat::kVtt;
  if (name == "verbose_json") return TranscriptionFormat::kVerboseJson;
  return TranscriptionFormat::kJson;
}

Status read_granularities(const SpeechModel& speech, const std::vector<std::string>& names, TranscriptionAsk& ask) {
  constexpr std::string_view kField = "timestamp_granularities";
  if (names.empty()) return ok_status();
  if (ask.format != TranscriptionFormat::kVerboseJson) {
    return field_error(kField, "timestamp_granularities needs response_format \"verbose_json\"");
  }
  ask.with_words = std::ranges::find(names, "word") != names.end();
  ask.with_segments = std::ranges::find(names, "segment") != names.end();
  const bool has_times = speech.tokens != nullptr && speech.tokens->no_timestamps.has_value();
  if (ask.with_words && !(speech.has_alignment_heads && has_times)) {
    return field_error(kField,
                       "timestamp_granularities: this model does not tell when a word was spoken (it has no "
                       "alignment heads); \"segment\" is what it has");
  }
  return ok_status();
}

// A code in any case, or an English name. Models without language tokens know English alone, and are not told.
StatusOr<std::string> language_of(const SpeechModel& speech, const std::string& language) {
  if (speech.tokens != nullptr) {
    RETURN_IF_ERROR(speech.tokens->language_token(language, "language").status());
    return language;
  }
  if (speech_language_code(language) == "en") return std::string();
  return field_error("language", str_cat("language ", quoted(language), ": this model knows English alone"));
}

// The search that the model's own files ask for, as far as the engine is wide enough.
void set_search(const ServerContext& context, const std::optional<float>& temperature, TranscribeOptions& options) {
  const SpeechModel& speech = *context.speech;
  options.beam_size = std::clamp(speech.generation->num_beams, 1, speech.max_num_seqs);
  options.best_of = std::clamp(options.best_of, 1, speech.max_num_seqs);
  options.seed = context.model.config.seed;
  if (temperature.value_or(0) <= 0) return;
  // 0.2 as it was written, not as a float holds it: verbose_json gives it back.
  options.temperature = std::max(1e-6, std::round(static_cast<double>(*temperature) * 1e6) / 1e6);
  options.temperature_increment = std::nullopt;
}

}  // namespace

StatusOr<TranscriptionAsk> transcription_ask(const ServerContext& context, const ParsedRequest& request,
                                             bool translate) {
  const SpeechModel& speech = *context.speech;
  TranscriptionAsk ask;
  ask.format = format_of(request.body.response_format);
  ask.stream = request.stream.value_or(false);
  if (ask.stream && ask.format != TranscriptionFormat::kJson && ask.format != TranscriptionFormat::kText) {
    return field_error("stream", str_cat("stream: response_format \"", *request.body.response_format,
                                         "\" cannot be streamed; json and text can"));
  }
  if (translate && (speech.tokens == nullptr || !speech.tokens->translate.has_value())) {
    return field_error("model", "this model transcribes only: it does not translate");
  }
  if (request.body.timestamp_granularities.has_value()) {
    RETURN_IF_ERROR(read_granularities(speech, *request.body.timestamp_granularities, ask));
  }
  TranscribeOptions& options = ask.options;
  options.task = translate ? "translate" : "transcribe";
  if (const auto& language = request.prompt_options.language; language.has_value()) {
    ASSIGN_OR_RETURN(options.language, language_of(speech, *language));
  }
  options.initial_prompt = strip_space(request.body.text.value_or(""));
  options.word_timestamps = ask.with_words;
  options.without_timestamps = speech.tokens != nullptr && !speech.tokens->no_timestamps.has_value();
  options.max_audio_seconds = context.options.max_audio_seconds;
  if (request.body.cuts_at_pauses) options.mode = TranscribeMode::kBatched;
  set_search(context, request.sampling.temperature, options);
  return ask;
}

Status as_form_error(const Status& error) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"initial_prompt", "prompt"},
      {"word_timestamps", "timestamp_granularities"},
      {"mode", "chunking_strategy"},
      {"best_of", "temperature"},
      {"task", "model"},
  };
  constexpr std::string_view kSame[] = {"file", "language", "temperature"};
  if (!absl::IsInvalidArgument(error)) return error;
  const std::string param = error_param(error);
  if (param.empty()) return field_error("file", str_cat("file: ", error_message(error)));
  if (std::ranges::find(kSame, param) != std::end(kSame)) return error;
  std::string message = error_message(error);
  for (const auto& [option, field] : kNames) {
    if (param != option) continue;
    if (message.starts_with(option)) message.replace(0, option.size(), field);
    return field_error(field, message);
  }
  return invalid_argument(message);  // of no field: how the server was set up
}

}  // namespace transept
