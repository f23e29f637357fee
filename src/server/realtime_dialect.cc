#include "server/realtime_dialect.h"

namespace transept {

const RealtimeDialect& choose_dialect(const RealtimeMessage& first, const RealtimeDialect& current) {
  if (first.type == "transcription_session.update") return beta_dialect();
  if (first.type != "session.update") return current;
  const Json* session = first.json.find("session");
  if (session == nullptr) return first.json.find("model") != nullptr ? vllm_dialect() : current;
  // A client of the GA form that sends the beta's header still.
  const Json* type = session->find("type");
  const bool is_ga = session->find("audio") != nullptr ||
                     (type != nullptr && type->is_string() && type->as_string() == "transcription");
  return is_ga ? openai_dialect() : current;
}

}  // namespace transept
