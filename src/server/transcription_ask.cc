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

bool has_timestamps(const SpeechModel& speech) {
  return speech.tokens != nullptr && speech.tokens->no_timestamps.has_value();
}

// What has times, by timestamp_granularities and word_timestamps.
Status read_times(const SpeechModel& speech, const BodyFields& body, TranscriptionAsk& ask) {
  const std::vector<std::string> names = body.timestamp_granularities.value_or(std::vector<std::string>());
  const bool lists_words = std::ranges::find(names, "word") != names.end();
  if (lists_words && body.word_timestamps == false) {
    return field_error("word_timestamps", "word_timestamps is false, but timestamp_granularities asks for \"word\"");
  }
  const bool asks_words = body.word_timestamps.value_or(false);
  if (names.empty() && !asks_words) return ok_status();
  const std::string_view field =
      names.empty() || (asks_words && !lists_words) ? "word_timestamps" : "timestamp_granularities";
  if (ask.format != TranscriptionFormat::kVerboseJson) {
    return field_error(field, str_cat(field, " needs response_format \"verbose_json\""));
  }
  ask.with_words = lists_words || asks_words;
  ask.with_segments = std::ranges::find(names, "segment") != names.end();
  if (ask.with_words && !(speech.has_alignment_heads && has_timestamps(speech))) {
    return field_error(field, str_cat(field,
                                      ": this model does not tell when a word was spoken (it has no alignment heads); "
                                      "\"segment\" is what it has"));
  }
  return ok_status();
}

// How audio is cut, and whether silence is passed over.
Status read_cutting(const ServerContext& context, const BodyFields& body, TranscribeOptions& options) {
  options.skip_silence = context.options.skip_silence && body.vad_filter != false;
  if (body.cuts_at_pauses || body.vad_filter == true) options.mode = TranscribeMode::kBatched;
  if (body.vad_filter != false) return ok_status();
  if (body.cuts_at_pauses) {
    return field_error("vad_filter", "vad_filter is false, but chunking_strategy asks for cuts at pauses");
  }
  if (!has_timestamps(*context.speech)) {
    return field_error("vad_filter",
                       "vad_filter: audio is always cut at pauses for this model, which has no timestamps");
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
  return field_error("language", str_cat("language ", in_quotes(language), ": this model knows English alone"));
}

// Beams that the request asks for, by either name; none: it does not say.
StatusOr<std::optional<int32_t>> read_beams(const SpeechModel& speech, const ParsedRequest& request) {
  const std::optional<int32_t> beam_size = request.body.beam_size;
  const std::optional<int32_t> num_beams = request.sampling.num_beams;
  if (beam_size.has_value() && num_beams.has_value() && *beam_size != *num_beams) {
    return field_error("num_beams", str_cat("num_beams ", *num_beams, " and beam_size ", *beam_size,
                                            " are two names of one thing and contradict each other"));
  }
  const std::string_view field = beam_size.has_value() ? "beam_size" : "num_beams";
  const std::optional<int32_t> beams = beam_size.has_value() ? beam_size : num_beams;
  if (beams.value_or(1) > speech.max_num_seqs) {
    return field_error(field, str_cat(field, " ", *beams, ": the engine runs ", speech.max_num_seqs,
                                      " sequences at most (--max-num-seqs)"));
  }
  if (beams.value_or(1) > 1 && request.sampling.temperature.value_or(0) > 0) {
    return field_error("temperature", str_cat("temperature ", *request.sampling.temperature,
                                              " samples, and beam search does not: give 0"));
  }
  return beams;
}

// 0.2 as it was written, not as a float holds it.
double as_written(float value) { return std::round(static_cast<double>(value) * 1e6) / 1e6; }

// What patience and best_of say of the search, whose beams are set.
Status read_search_details(const SpeechModel& speech, const ParsedRequest& request, TranscribeOptions& options) {
  if (const std::optional<float> patience = request.body.patience; patience.has_value()) {
    if (*options.beam_size == 1) return field_error("patience", "patience is of a beam search: give beam_size, too");
    options.patience = as_written(*patience);
  }
  const std::optional<int32_t> best_of = request.sampling.best_of;
  if (best_of.value_or(1) > speech.max_num_seqs) {
    return field_error("best_of", str_cat("best_of ", *best_of, ": the engine runs ", speech.max_num_seqs,
                                          " sequences at most (--max-num-seqs)"));
  }
  options.best_of = std::clamp(best_of.value_or(options.best_of), 1, speech.max_num_seqs);
  return ok_status();
}

// The search that the request asks for, else that of the model's own files, as far as the engine is wide enough.
Status set_search(const ServerContext& context, const ParsedRequest& request, TranscribeOptions& options) {
  const SpeechModel& speech = *context.speech;
  ASSIGN_OR_RETURN(options.beam_size, read_beams(speech, request));
  if (!options.beam_size.has_value()) {
    options.beam_size = std::clamp(speech.generation->num_beams, 1, speech.max_num_seqs);
  }
  RETURN_IF_ERROR(read_search_details(speech, request, options));
  options.seed = context.model.config.seed;
  const std::optional<float>& temperature = request.sampling.temperature;
  if (temperature.value_or(0) <= 0) return ok_status();
  options.temperature = std::max(1e-6, as_written(*temperature));  // verbose_json gives it back
  options.temperature_increment = std::nullopt;
  return ok_status();
}

}  // namespace

StatusOr<TranscriptionAsk> transcription_ask(const ServerContext& context, const ParsedRequest& request,
                                             bool translate) {
  const SpeechModel& speech = *context.speech;
  TranscriptionAsk ask;
  ask.format = format_of(request.body.response_format);
  ask.stream = request.stream.value_or(false);
  if (ask.stream && (ask.format == TranscriptionFormat::kSrt || ask.format == TranscriptionFormat::kVtt)) {
    return field_error("stream", str_cat("stream: response_format \"", *request.body.response_format,
                                         "\" cannot be streamed; json, text and verbose_json can"));
  }
  ask.with_progress = request.body.include_progress.value_or(false);
  if (ask.with_progress && !(ask.stream && ask.format == TranscriptionFormat::kVerboseJson)) {
    return field_error("stream_options",
                       "stream_options.include_progress needs stream and response_format \"verbose_json\"");
  }
  if (translate && request.prompt_options.task == "transcribe") {
    return field_error("task", "task: this route translates; /v1/audio/transcriptions transcribes");
  }
  translate = translate || request.prompt_options.task == "translate";
  if (translate && (speech.tokens == nullptr || !speech.tokens->translate.has_value())) {
    const bool is_asked = request.prompt_options.task.has_value();
    return field_error(is_asked ? "task" : "model", "this model transcribes only: it does not translate");
  }
  RETURN_IF_ERROR(read_times(speech, request.body, ask));
  TranscribeOptions& options = ask.options;
  options.task = translate ? "translate" : "transcribe";
  if (const auto& language = request.prompt_options.language; language.has_value()) {
    ASSIGN_OR_RETURN(options.language, language_of(speech, *language));
  }
  options.initial_prompt = strip_space(request.body.text.value_or(""));
  options.hotwords = strip_space(request.body.hotwords.value_or(""));
  options.condition_on_previous_text = request.body.condition_on_previous_text.value_or(true);
  options.word_timestamps = ask.with_words;
  options.without_timestamps = speech.tokens != nullptr && !has_timestamps(speech);
  options.max_audio_seconds = context.options.max_audio_seconds;
  RETURN_IF_ERROR(read_cutting(context, request.body, options));
  RETURN_IF_ERROR(set_search(context, request, options));
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
  constexpr std::string_view kSame[] = {"file", "language", "temperature", "hotwords", "patience"};
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
