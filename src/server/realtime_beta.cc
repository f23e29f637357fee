// The beta form of OpenAI's transcription sessions, which clients of 2025 speak.
#include "request/field_reader.h"
#include "server/realtime_openai.h"

namespace transept {
namespace {

constexpr std::pair<std::string_view, RealtimeFormat> kFormats[] = {
    {"pcm16", {}},
    {"g711_ulaw", {RealtimeFormat::Kind::kPcmu, RealtimeFormat::kTelephoneRate}},
    {"g711_alaw", {RealtimeFormat::Kind::kPcma, RealtimeFormat::kTelephoneRate}},
};

RealtimeFailure read_format(const Json& value, const std::string& path, RealtimeFormat& out) {
  for (const auto& [name, format] : kFormats) {
    if (!value.is_null() && !(value.is_string() && value.as_string() == name)) continue;
    out = format;
    return std::nullopt;
  }
  return field_failure(path, str_cat(R"(expected "pcm16", "g711_ulaw" or "g711_alaw", got )", shown(value)));
}

std::string_view format_name(const RealtimeFormat& format) {
  for (const auto& [name, each] : kFormats) {
    if (each.kind == format.kind) return name;
  }
  return "";
}

Json beta_session_json(const RealtimeView& session) {
  const RealtimeConfig& config = session.config;
  const Json::Object transcription{
      {"model", config.model}, {"language", text_or_null(config.language)}, {"prompt", text_or_null(config.prompt)}};
  return Json(Json::Object{{"id", session.id},
                           {"object", "realtime.transcription_session"},
                           {"expires_at", session.expires_at},
                           {"input_audio_format", format_name(config.format)},
                           {"input_audio_transcription", transcription},
                           {"input_audio_noise_reduction", Json()},
                           {"turn_detection", turn_detection_json(config)},
                           {"include", include_json(config)},
                           {"client_secret", Json()}});
}

class BetaDialect final : public OpenAiDialect {
 public:
  RealtimeFailure read_update(const RealtimeMessage& message, const RealtimeServed& served,
                              RealtimeConfig& config) const override {
    RealtimeFailure error;
    const Json* session = session_of(message, error);
    if (session == nullptr) return error;
    const auto ignore = [](const Json&, const std::string&) { return RealtimeFailure(); };
    return read_members(
        *session, "session",
        {{"input_audio_format", [&](const Json& v, const std::string& p) { return read_format(v, p, config.format); }},
         {"input_audio_transcription",
          [&](const Json& v, const std::string& p) { return read_transcription(v, p, served, config); }},
         {"input_audio_noise_reduction", read_noise_reduction},
         {"turn_detection", [&](const Json& v, const std::string& p) { return read_turn_detection(v, p, config); }},
         {"include", [&](const Json& v, const std::string& p) { return read_include(v, p, config); }},
         {"modalities", ignore},
         {"client_secret", ignore}});
  }

  std::string path_of(std::string_view option) const override {
    if (option.empty()) return "session";
    if (option == "sampling_rate") return "session.input_audio_format";
    if (option == "hotwords") return "session.input_audio_transcription.keywords";
    if (option.starts_with("turn_detection")) return str_cat("session.", option);
    return str_cat("session.input_audio_transcription.", option);
  }

  void created(const RealtimeView& session, RealtimeEvents& out) const override {
    out.add("transcription_session.created", {{"session", beta_session_json(session)}});
  }
  void updated(const RealtimeView& session, RealtimeEvents& out) const override {
    out.add("transcription_session.updated", {{"session", beta_session_json(session)}});
  }
  void committed(const std::string& item, const std::string& previous, RealtimeEvents& out) const override {
    const Json before = text_or_null(previous);
    out.add("input_audio_buffer.committed", {{"previous_item_id", before}, {"item_id", item}});
    out.add("conversation.item.created", {{"previous_item_id", before}, {"item", user_item_json(item)}});
  }

 protected:
  bool is_update(std::string_view type) const override {
    return type == "transcription_session.update" || type == "session.update";
  }
};

}  // namespace

const RealtimeDialect& beta_dialect() {
  static const BetaDialect dialect;
  return dialect;
}

}  // namespace transept
