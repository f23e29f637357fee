#include "server/transcription_reply.h"

#include <cmath>

#include "core/speech_languages.h"
#include "speech/characters.h"
#include "speech/subtitles.h"

namespace transept {
namespace {

std::string text_of(const Transcript& transcript) { return std::string(strip_space(transcript.text)); }

void append_words(const Segment& segment, Json& words) {
  for (const Word& word : segment.words) {
    words.push_back(Json(Json::Object{{"word", strip_space(word.word)}, {"start", word.start}, {"end", word.end}}));
  }
}

Json words_json(const Transcript& transcript) {
  Json words = Json::array();
  for (const Segment& segment : transcript.segments) append_words(segment, words);
  return words;
}

Json segments_json(const Transcript& transcript) {
  Json::Array segments;
  for (const Segment& segment : transcript.segments) segments.push_back(segment_json(segment, /*has_words=*/false));
  return Json(std::move(segments));
}

Json verbose_json(const Transcript& transcript, const TranscriptionAsk& ask) {
  Json json = Json::object();
  append_verbose_head(transcript, ask, json);
  if (ask.with_segments) json.set("segments", segments_json(transcript));
  if (ask.with_words) json.set("words", words_json(transcript));
  json.set("usage", duration_usage(transcript.duration));
  return json;
}

}  // namespace

HttpResponse transcription_reply(const Transcript& transcript, const TranscriptionAsk& ask) {
  HttpResponse response;
  switch (ask.format) {
    case TranscriptionFormat::kJson: {
      const Json::Object json{{"text", text_of(transcript)}, {"usage", duration_usage(transcript.duration)}};
      response.body = Json(json).dump();
      break;
    }
    case TranscriptionFormat::kVerboseJson: response.body = verbose_json(transcript, ask).dump(); break;
    case TranscriptionFormat::kText:
      response.content_type = "text/plain; charset=utf-8";
      response.body = text_of(transcript) + "\n";
      break;
    case TranscriptionFormat::kSrt:
      response.content_type = "application/x-subrip; charset=utf-8";
      response.body = write_transcript(transcript, TranscriptFormat::kSrt);
      break;
    case TranscriptionFormat::kVtt:
      response.content_type = "text/vtt; charset=utf-8";
      response.body = write_transcript(transcript, TranscriptFormat::kVtt);
      break;
  }
  return response;
}

void append_verbose_head(const Transcript& transcript, const TranscriptionAsk& ask, Json& json) {
  const bool translates = ask.options.task == "translate";
  // Of a translation the language that it is in (openapi: "always english").
  const std::string_view language = speech_language_name(translates ? "en" : transcript.language);
  json.set("task", ask.options.task);
  json.set("language", language);
  json.set("duration", transcript.duration);
  json.set("text", text_of(transcript));
}

Json segment_event(const Segment& segment, const TranscriptionAsk& ask) {
  Json event(Json::Object{{"type", "transcript.text.segment"}, {"speaker", ""}});
  const Json fields = segment_json(segment, /*has_words=*/false);
  for (const auto& [name, value] : fields.as_object()) {
    event.set(name, name == "id" ? Json(str_cat(segment.id)) : value);
  }
  if (!ask.with_words) return event;
  Json words = Json::array();
  append_words(segment, words);
  event.set("words", std::move(words));
  return event;
}

Json duration_usage(double seconds) {
  return Json(Json::Object{{"type", "duration"}, {"seconds", static_cast<int64_t>(std::ceil(seconds))}});
}

std::optional<Json> token_usage(const SpeechModel& speech, const TranscribeCounts& counts) {
  if (!speech.audio->max_samples().has_value()) return std::nullopt;
  const int64_t audio = counts.num_encoder_tokens, text = counts.num_prompt_tokens,
                output = counts.num_generated_tokens;
  return Json(Json::Object{{"type", "tokens"},
                           {"input_tokens", text + audio},
                           {"input_token_details", Json::Object{{"text_tokens", text}, {"audio_tokens", audio}}},
                           {"output_tokens", output},
                           {"total_tokens", text + audio + output}});
}

}  // namespace transept
