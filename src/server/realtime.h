// GET /v1/realtime, a WebSocket for live transcription, and POST /v1/realtime/client_secrets (docs/live.md).
// Thread-safe functions.
#pragma once

#include <string_view>

#include "net/websocket.h"
#include "server/server_context.h"

namespace transept {

// An append of 15 MiB of audio, as OpenAI takes them, in base64, and what is around it.
inline constexpr size_t kMaxRealtimeMessageBytes = (size_t{20} << 20) + (size_t{4} << 10);

// Errors: kInvalidArgument for a model without audio, another intent, or subprotocols without "realtime"; kNotFound for
// a model that is not served; kUnavailable if --max-live-sessions are open.
StatusOr<WebSocketUpgrade> open_realtime(const ServerContext& context, const HttpRequest& request);

void handle_client_secret(const ServerContext& context, const ApiCallPtr& call);

}  // namespace transept
