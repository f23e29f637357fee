// What OpenAI's two forms of a transcription session have in common; the GA form. For realtime_beta.cc and
// realtime.cc.
#pragma once

#include <string>
#include <string_view>

#include "server/realtime_dialect.h"

namespace transept {

class OpenAiDialect : public RealtimeDialect {
 public:
  void begin(RealtimeConfig&) const override {}
  RealtimeFailure read(const RealtimeMessage& message, ClientEvent& out) const override;
  RealtimeFailure read_update(const RealtimeMessage& message, const RealtimeServed& served,
                              RealtimeConfig& config) const override;
  std::string path_of(std::string_view option) const override;

  void created(const RealtimeView& session, RealtimeEvents& out) const override;
  void updated(const RealtimeView& session, RealtimeEvents& out) const override;
  void speech_started(const std::string& item, int64_t audio_start_ms, RealtimeEvents& out) const override;
  void speech_stopped(const std::string& item, int64_t audio_end_ms, RealtimeEvents& out) const override;
  void committed(const std::string& item, const std::string& previous, RealtimeEvents& out) const override;
  void cleared(RealtimeEvents& out) const override;
  void delta(const std::string& item, std::string_view text, RealtimeEvents& out) const override;
  void hypothesis(const std::string& item, std::string_view text, RealtimeEvents& out) const override;
  void completed(const std::string& item, const LiveTranscript& transcript, RealtimeEvents& out) const override;
  void failed(const std::string& item, const RealtimeError& error, RealtimeEvents& out) const override;
  void error(const RealtimeError& error, const std::string& event_id, RealtimeEvents& out) const override;

 protected:
  // Whether events of this type change the configuration.
  virtual bool is_update(std::string_view type) const { return type == "session.update"; }
};

// The session's configuration as OpenAI shows it: GA.
Json session_json(const RealtimeView& session);
// An item whose transcript is not there yet.
Json user_item_json(const std::string& item);
// null for none.
Json turn_detection_json(const RealtimeConfig& config);
Json include_json(const RealtimeConfig& config);
inline Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
// The "session" of an update; null: there is none, and `error` says so.
const Json* session_of(const RealtimeMessage& message, RealtimeFailure& error);

}  // namespace transept
