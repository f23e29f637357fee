#include "server/realtime_openai.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/utf8.h"
#include "request/field_reader.h"
#include "request/result_json.h"

namespace transept {
namespace {

// Of OpenAI's sessions that answer, in both forms.
constexpr std::string_view kUnsupported[] = {
    "conversation.item.create",
    "conversation.item.delete",
    "conversation.item.retrieve",
    "conversation.item.truncate",
    "output_audio_buffer.clear",
    "response.cancel",
    "response.create",
    "session.update",
    "transcription_session.update",
};

constexpr std::string_view kInput = "session.audio.input";
constexpr float kLeastLogprob = -9999;  // JSON has no infinity

std::string_view format_name(RealtimeFormat::Kind kind) {
  switch (kind) {
    case RealtimeFormat::Kind::kPcm: return "audio/pcm";
    case RealtimeFormat::Kind::kPcmu: return "audio/pcmu";
    case RealtimeFormat::Kind::kPcma: break;
  }
  return "audio/pcma";
}

Json format_json(const RealtimeFormat& format) {
  Json json(Json::Object{{"type", format_name(format.kind)}});
  if (format.kind == RealtimeFormat::Kind::kPcm) json.set("rate", format.rate);
  return json;
}

Json texts_json(const std::vector<std::string>& texts) {
  return texts.empty() ? Json() : Json(Json::Array(texts.begin(), texts.end()));
}

Json transcription_json(const RealtimeConfig& config) {
  return Json(Json::Object{{"model", config.model},
                           {"language", text_or_null(config.language)},
                           {"languages", texts_json(config.languages)},
                           {"prompt", text_or_null(config.prompt)},
                           {"keywords", texts_json(config.keywords)},
                           {"delay", live_delay_name(config.delay)}});
}

// What is half a character in a token is U+FFFD in its text; its bytes have it.
Json logprobs_json(const std::vector<LiveToken>& tokens) {
  Json::Array array;
  for (const LiveToken& token : tokens) {
    Json::Array bytes;
    for (const char c : token.bytes) bytes.emplace_back(static_cast<int64_t>(static_cast<unsigned char>(c)));
    array.emplace_back(Json::Object{{"token", sanitize_utf8(token.bytes)},
                                    {"logprob", short_number(std::max(token.logprob, kLeastLogprob))},
                                    {"bytes", std::move(bytes)}});
  }
  return Json(std::move(array));
}

RealtimeFailure read_rate(const Json& value, const std::string& path, const RealtimeFormat& format, int32_t& out) {
  const bool is_pcm = format.kind == RealtimeFormat::Kind::kPcm;
  const int32_t least = is_pcm ? kMinLiveRate : RealtimeFormat::kTelephoneRate;
  const int32_t most = is_pcm ? kMaxLiveRate : RealtimeFormat::kTelephoneRate;
  const std::optional<int64_t> rate = whole_number_of(value);
  if (!rate.has_value() || *rate < least || *rate > most) {
    const std::string wanted = is_pcm ? str_cat("a whole number from ", least, " to ", most) : str_cat(least);
    return field_failure(path, str_cat("expected ", wanted, ", got ", shown(value)));
  }
  out = static_cast<int32_t>(*rate);
  return std::nullopt;
}

// A format is replaced as a whole: one without a rate has OpenAI's.
RealtimeFailure read_format(const Json& value, const std::string& path, RealtimeFormat& out) {
  using Kind = RealtimeFormat::Kind;
  RealtimeFormat format;
  const Json* rate = nullptr;
  const auto read_type = [&](const Json& v, const std::string& p) -> RealtimeFailure {
    for (const Kind kind : {Kind::kPcm, Kind::kPcmu, Kind::kPcma}) {
      if (!v.is_string() || v.as_string() != format_name(kind)) continue;
      format.kind = kind;
      if (kind != Kind::kPcm) format.rate = RealtimeFormat::kTelephoneRate;
      return std::nullopt;
    }
    return field_failure(p, str_cat(R"(expected "audio/pcm", "audio/pcmu" or "audio/pcma", got )", shown(v)));
  };
  const auto keep_rate = [&](const Json& v, const std::string&) -> RealtimeFailure {
    rate = &v;
    return std::nullopt;
  };
  if (!value.is_null()) {
    if (RealtimeFailure error = read_members(value, path, {{"type", read_type}, {"rate", keep_rate}})) return error;
    if (value.find("type") == nullptr) {
      return field_failure(str_cat(path, ".type"), "a format needs it", "missing_required_parameter");
    }
  }
  if (rate != nullptr && !rate->is_null()) {
    if (RealtimeFailure error = read_rate(*rate, str_cat(path, ".rate"), format, format.rate)) return error;
  }
  out = format;
  return std::nullopt;
}

RealtimeFailure read_input(const Json& value, const std::string& path, const RealtimeServed& served,
                           RealtimeConfig& config) {
  if (value.is_null()) {
    config = RealtimeConfig{.includes_hypotheses = config.includes_hypotheses,
                            .includes_logprobs = config.includes_logprobs};
    return std::nullopt;
  }
  return read_members(
      value, path,
      {{"format", [&](const Json& v, const std::string& p) { return read_format(v, p, config.format); }},
       {"transcription", [&](const Json& v, const std::string& p) { return read_transcription(v, p, served, config); }},
       {"noise_reduction", read_noise_reduction},
       {"turn_detection", [&](const Json& v, const std::string& p) { return read_turn_detection(v, p, config); }}});
}

RealtimeFailure read_session_type(const Json& value, const std::string& path) {
  if (value.is_string() && value.as_string() == "transcription") return std::nullopt;
  if (value.is_string() && value.as_string() == "realtime") {
    return refused_field(path,
                         "\"realtime\" is not served: this server transcribes, and answers nothing; "
                         "\"transcription\" is");
  }
  return field_failure(path, str_cat("expected \"transcription\", got ", shown(value)));
}

constexpr std::string_view kTranscriptionEvent = "conversation.item.input_audio_transcription.";

}  // namespace

const Json* session_of(const RealtimeMessage& message, RealtimeFailure& error) {
  const Json* session = message.json.find("session");
  if (session == nullptr) error = field_failure("session", "an update needs it", "missing_required_parameter");
  return session;
}

RealtimeFailure OpenAiDialect::read(const RealtimeMessage& message, ClientEvent& out) const {
  out = {};
  if (message.type == "input_audio_buffer.append") return read_audio(message, out);
  if (message.type == "input_audio_buffer.commit") {
    out.kind = ClientEvent::Kind::kCommit;
  } else if (message.type == "input_audio_buffer.clear") {
    out.kind = ClientEvent::Kind::kClear;
  } else if (is_update(message.type)) {
    out.kind = ClientEvent::Kind::kUpdate;
  } else if (std::ranges::find(kUnsupported, message.type) != std::end(kUnsupported)) {
    return field_failure("type", str_cat(in_quotes(message.type), " is not served: this session transcribes alone"),
                         "unsupported_event");
  } else {
    return field_failure("type", str_cat("there is no event ", in_quotes(message.type)), "unknown_event");
  }
  return std::nullopt;
}

RealtimeFailure OpenAiDialect::read_update(const RealtimeMessage& message, const RealtimeServed& served,
                                           RealtimeConfig& config) const {
  RealtimeFailure error;
  const Json* session = session_of(message, error);
  if (session == nullptr) return error;
  const auto read_audio_member = [&](const Json& v, const std::string& p) -> RealtimeFailure {
    if (v.is_null()) return read_input(v, p, served, config);
    return read_members(v, p, {{"input", [&](const Json& input, const std::string& path) {
                                  return read_input(input, path, served, config);
                                }}});
  };
  return read_members(*session, "session",
                      {{"type", read_session_type},
                       {"audio", read_audio_member},
                       {"include", [&](const Json& v, const std::string& p) { return read_include(v, p, config); }}});
}

std::string OpenAiDialect::path_of(std::string_view option) const {
  if (option.empty()) return "session";
  if (option == "sampling_rate") return str_cat(kInput, ".format.rate");
  if (option == "hotwords") return str_cat(kInput, ".transcription.keywords");
  if (option.starts_with("turn_detection")) return str_cat(kInput, ".", option);
  return str_cat(kInput, ".transcription.", option);
}

Json turn_detection_json(const RealtimeConfig& config) {
  if (!config.turn_detection.has_value()) return Json();
  return Json(Json::Object{{"type", "server_vad"},
                           {"threshold", config.turn_detection->threshold},
                           {"prefix_padding_ms", config.turn_detection->prefix_padding_ms},
                           {"silence_duration_ms", config.turn_detection->silence_duration_ms}});
}

Json include_json(const RealtimeConfig& config) {
  Json::Array names;
  if (config.includes_logprobs) names.emplace_back(kIncludeLogprobs);
  if (config.includes_hypotheses) names.emplace_back(kIncludeHypotheses);
  return names.empty() ? Json() : Json(std::move(names));
}

Json session_json(const RealtimeView& session) {
  const Json::Object input{{"format", format_json(session.config.format)},
                           {"transcription", transcription_json(session.config)},
                           {"noise_reduction", Json()},
                           {"turn_detection", turn_detection_json(session.config)}};
  return Json(Json::Object{{"id", session.id},
                           {"object", "realtime.transcription_session"},
                           {"type", "transcription"},
                           {"audio", Json::Object{{"input", input}}},
                           {"include", include_json(session.config)},
                           {"expires_at", session.expires_at}});
}

Json user_item_json(const std::string& item) {
  return Json(
      Json::Object{{"id", item},
                   {"object", "realtime.item"},
                   {"type", "message"},
                   {"status", "completed"},
                   {"role", "user"},
                   {"content", Json::Array{Json(Json::Object{{"type", "input_audio"}, {"transcript", Json()}})}}});
}

// vLLM's clients read id and created, and have not said yet who they are.
void OpenAiDialect::created(const RealtimeView& session, RealtimeEvents& out) const {
  out.add("session.created", {{"session", session_json(session)}, {"id", session.id}, {"created", session.created_at}});
}

void OpenAiDialect::updated(const RealtimeView& session, RealtimeEvents& out) const {
  out.add("session.updated", {{"session", session_json(session)}});
}

void OpenAiDialect::speech_started(const std::string& item, int64_t audio_start_ms, RealtimeEvents& out) const {
  out.add("input_audio_buffer.speech_started", {{"audio_start_ms", audio_start_ms}, {"item_id", item}});
}

void OpenAiDialect::speech_stopped(const std::string& item, int64_t audio_end_ms, RealtimeEvents& out) const {
  out.add("input_audio_buffer.speech_stopped", {{"audio_end_ms", audio_end_ms}, {"item_id", item}});
}

void OpenAiDialect::committed(const std::string& item, const std::string& previous, RealtimeEvents& out) const {
  const Json before = text_or_null(previous);
  out.add("input_audio_buffer.committed", {{"previous_item_id", before}, {"item_id", item}});
  for (const std::string_view type : {"conversation.item.added", "conversation.item.done"}) {
    out.add(type, {{"previous_item_id", before}, {"item", user_item_json(item)}});
  }
}

void OpenAiDialect::cleared(RealtimeEvents& out) const { out.add("input_audio_buffer.cleared", {}); }

void OpenAiDialect::delta(const std::string& item, std::string_view text, RealtimeEvents& out) const {
  out.add(str_cat(kTranscriptionEvent, "delta"), {{"item_id", item}, {"content_index", 0}, {"delta", text}});
}

void OpenAiDialect::hypothesis(const std::string& item, std::string_view text, RealtimeEvents& out) const {
  out.add("transept.hypothesis", {{"item_id", item}, {"content_index", 0}, {"text", text}});
}

void OpenAiDialect::completed(const std::string& item, const LiveTranscript& transcript, RealtimeEvents& out) const {
  Json::Object fields{{"item_id", item},
                      {"content_index", 0},
                      {"transcript", transcript.text},
                      {"usage", Json::Object{{"type", "duration"}, {"seconds", transcript.seconds}}}};
  if (!transcript.language.empty()) {
    fields.emplace_back("languages", Json::Array{Json(Json::Object{{"code", transcript.language}})});
  }
  if (!transcript.tokens.empty()) fields.emplace_back("logprobs", logprobs_json(transcript.tokens));
  if (transcript.was_revised) fields.emplace_back("transept_revised", true);
  out.add(str_cat(kTranscriptionEvent, "completed"), std::move(fields));
}

void OpenAiDialect::failed(const std::string& item, const RealtimeError& error, RealtimeEvents& out) const {
  const Json::Object details{
      {"type", error.type}, {"code", error.code}, {"message", error.message}, {"param", text_or_null(error.param)}};
  out.add(str_cat(kTranscriptionEvent, "failed"), {{"item_id", item}, {"content_index", 0}, {"error", details}});
}

void OpenAiDialect::error(const RealtimeError& error, const std::string& event_id, RealtimeEvents& out) const {
  const Json::Object details{{"type", error.type},
                             {"code", error.code},
                             {"message", error.message},
                             {"param", text_or_null(error.param)},
                             {"event_id", text_or_null(event_id)}};
  out.add("error", {{"error", details}});
}

const RealtimeDialect& openai_dialect() {
  static const OpenAiDialect dialect;
  return dialect;
}

}  // namespace transept
