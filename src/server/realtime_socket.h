// A session of /v1/realtime on its WebSocket: reads what the client sends, and lets a RealtimeSession transcribe it.
#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "net/websocket.h"
#include "server/realtime_dialect.h"
#include "server/realtime_hub.h"
#include "server/work_pool.h"

namespace transept {

struct RealtimeSocketOptions {
  const RealtimeDialect* dialect = &openai_dialect();  // until the first event
  RealtimeConfig config;                               // with a model
  RealtimeServed served;
  std::string cache_salt;
  Json::ParseLimits json;
  std::string request_id;            // for the log
  WorkPool* long_workers = nullptr;  // take messages that are long; null: the I/O thread takes all
};

// Longer messages are taken by long_workers: minutes of audio take a while to read.
inline constexpr size_t kLongMessageBytes = size_t{256} << 10;
// So many events in error, one after the other, end a session.
inline constexpr int kMaxErrorsInRow = 100;

// The handler holds its place until it is destroyed. Borrows the hub.
std::unique_ptr<WebSocketHandler> make_realtime_socket(RealtimeHub& hub, RealtimeHub::Place place,
                                                       RealtimeSocketOptions options);

}  // namespace transept
