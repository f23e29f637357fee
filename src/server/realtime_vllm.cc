// vLLM's dialect: 16 kHz, no turn detection, a commit that begins and one with "final" that ends, errors of one string.
#include "base/quoted.h"
#include "server/realtime_dialect.h"

namespace transept {
namespace {

constexpr int32_t kRate = 16000;

class VllmDialect final : public RealtimeDialect {
 public:
  void begin(RealtimeConfig& config) const override {
    config.format = {RealtimeFormat::Kind::kPcm, kRate};
    config.turn_detection = std::nullopt;
  }

  RealtimeFailure read(const RealtimeMessage& message, ClientEvent& out) const override {
    out = {};
    if (message.type == "input_audio_buffer.append") return read_audio(message, out);
    if (message.type == "session.update") {
      out.kind = ClientEvent::Kind::kUpdate;
    } else if (message.type == "input_audio_buffer.commit") {
      const Json* is_final = message.json.find("final");
      if (is_final != nullptr && !is_final->is_null() && !is_final->is_bool()) {
        return field_failure("final", str_cat("expected true or false, got ", is_final->kind_name()));
      }
      if (is_final == nullptr || is_final->is_null() || !is_final->as_bool()) return std::nullopt;
      out.kind = ClientEvent::Kind::kCommit;
      out.may_be_empty = true;
    } else {
      return field_failure("type", str_cat("there is no event ", in_quotes(message.type)), "unknown_event");
    }
    return std::nullopt;
  }

  RealtimeFailure read_update(const RealtimeMessage& message, const RealtimeServed& served,
                              RealtimeConfig& config) const override {
    // As vLLM does, fields that nothing knows are passed over.
    for (const auto& [name, value] : message.json.as_object()) {
      RealtimeFailure error;
      if (name == "model") error = read_model(value, name, served, config);
      if (name == "language") error = read_text(value, name, kMaxQuotedBytes, config.language);
      if (name == "prompt") error = read_text(value, name, served.max_text_bytes, config.prompt);
      if (error.has_value()) return error;
    }
    return std::nullopt;
  }

  std::string path_of(std::string_view option) const override { return std::string(option); }

  void created(const RealtimeView& session, RealtimeEvents& out) const override {
    out.add_without_id("session.created", {{"id", session.id}, {"created", session.created_at}});
  }
  void updated(const RealtimeView&, RealtimeEvents&) const override {}
  void speech_started(const std::string&, int64_t, RealtimeEvents&) const override {}
  void speech_stopped(const std::string&, int64_t, RealtimeEvents&) const override {}
  void committed(const std::string&, const std::string&, RealtimeEvents&) const override {}
  void cleared(RealtimeEvents&) const override {}
  void delta(const std::string&, std::string_view text, RealtimeEvents& out) const override {
    out.add_without_id("transcription.delta", {{"delta", text}});
  }
  void hypothesis(const std::string&, std::string_view, RealtimeEvents&) const override {}
  void completed(const std::string&, const LiveTranscript& transcript, RealtimeEvents& out) const override {
    Json::Object fields{{"text", transcript.text}, {"usage", Json()}};
    if (!transcript.language.empty()) fields.emplace_back("language", transcript.language);
    if (transcript.was_revised) fields.emplace_back("transept_revised", true);
    out.add_without_id("transcription.done", std::move(fields));
  }
  void failed(const std::string&, const RealtimeError& error, RealtimeEvents& out) const override {
    this->error(error, "", out);
  }
  void error(const RealtimeError& error, const std::string&, RealtimeEvents& out) const override {
    out.add_without_id("error", {{"error", error.message}, {"code", error.code}});
  }
};

}  // namespace

const RealtimeDialect& vllm_dialect() {
  static const VllmDialect dialect;
  return dialect;
}

}  // namespace transept
