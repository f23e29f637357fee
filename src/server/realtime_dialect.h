// The dialects of /v1/realtime: how clients write what they ask for, and how they are answered. All speak to the same
// session. Constant objects: thread-safe.
//
//   kOpenAi  OpenAI's transcription sessions (GA)
//   kBeta    the same as of OpenAI's beta: flat fields, transcription_session.update
//   kVllm    vLLM's: a model at the top level, a commit with "final" at the end, transcription.delta and .done
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/realtime_config.h"
#include "server/realtime_error.h"
#include "server/realtime_events.h"

namespace transept {

// A session as its events show it.
struct RealtimeView {
  std::string id;
  int64_t created_at = 0, expires_at = 0;  // seconds since 1970
  RealtimeConfig config;                   // with a model
};

class RealtimeDialect {
 public:
  virtual ~RealtimeDialect() = default;

  // The configuration that a session has if this dialect is chosen by its first event.
  virtual void begin(RealtimeConfig& config) const = 0;

  // What comes. Errors: unsupported_event for one that OpenAI has and this server has not; unknown_event; a field.
  virtual RealtimeFailure read(const RealtimeMessage& message, ClientEvent& out) const = 0;
  // Applies a message of kUpdate to `config`, which is half changed if there is an error.
  virtual RealtimeFailure read_update(const RealtimeMessage& message, const RealtimeServed& served,
                                      RealtimeConfig& config) const = 0;
  // The path of a field of LiveOptions, for errors.
  virtual std::string path_of(std::string_view option) const = 0;

  // What goes. Each appends any number of messages.
  virtual void created(const RealtimeView& session, RealtimeEvents& out) const = 0;
  virtual void updated(const RealtimeView& session, RealtimeEvents& out) const = 0;
  virtual void speech_started(const std::string& item, int64_t audio_start_ms, RealtimeEvents& out) const = 0;
  virtual void speech_stopped(const std::string& item, int64_t audio_end_ms, RealtimeEvents& out) const = 0;
  // `previous`: the item committed before; "": none.
  virtual void committed(const std::string& item, const std::string& previous, RealtimeEvents& out) const = 0;
  virtual void cleared(RealtimeEvents& out) const = 0;
  virtual void delta(const std::string& item, std::string_view text, RealtimeEvents& out) const = 0;
  virtual void hypothesis(const std::string& item, std::string_view text, RealtimeEvents& out) const = 0;
  virtual void completed(const std::string& item, const LiveTranscript& transcript, RealtimeEvents& out) const = 0;
  virtual void failed(const std::string& item, const RealtimeError& error, RealtimeEvents& out) const = 0;
  // `event_id`: of the event that caused it; "": none, or it had none.
  virtual void error(const RealtimeError& error, const std::string& event_id, RealtimeEvents& out) const = 0;
};

const RealtimeDialect& openai_dialect();
const RealtimeDialect& beta_dialect();
const RealtimeDialect& vllm_dialect();

// The dialect of a session's first event. `current`: that of its handshake.
const RealtimeDialect& choose_dialect(const RealtimeMessage& first, const RealtimeDialect& current);

}  // namespace transept
