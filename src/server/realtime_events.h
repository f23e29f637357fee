// Events of /v1/realtime: what every dialect has in common. Client events as JSON objects with a type, server events as
// messages with ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/realtime_error.h"

namespace transept {

// A client's message, before a dialect reads it.
struct RealtimeMessage {
  Json json;  // an object
  std::string type;
  std::string event_id;  // the client's; "": none
  // Of an append that is written plainly, its audio, which is decoded already: `json` is empty then.
  std::optional<std::string> audio;
};
inline constexpr size_t kMaxEventIdBytes = 512;

// Parses one message. Of a message in error, `out` has the event_id if that could be read. Pure function: thread-safe.
RealtimeFailure parse_message(std::string_view text, const Json::ParseLimits& limits, RealtimeMessage& out);

// What a client asks for, whatever the dialect.
struct ClientEvent {
  enum class Kind : uint8_t {
    kUpdate,   // of the configuration, by RealtimeDialect::read_update
    kAppend,   // `audio`
    kCommit,   // the open item ends
    kClear,    // the open item is forgotten
    kNothing,  // is taken, and changes nothing
  };
  Kind kind = Kind::kNothing;
  std::string audio;
  // Of kCommit: too little audio for an item is answered by an empty transcript, not by an error.
  bool may_be_empty = false;
};

// Reads the "audio" of an append. Pure function: thread-safe.
RealtimeFailure read_audio(const RealtimeMessage& message, ClientEvent& out);

// The ids of one session, which no other session of this process has. Not thread-safe.
class RealtimeIds final {
 public:
  // Draws them at random.
  RealtimeIds();
  // For tests.
  explicit RealtimeIds(std::string key) : key_(std::move(key)) {}

  std::string session() const { return "sess_" + key_; }
  std::string item(int64_t number) const;
  std::string next_event();

 private:
  std::string key_;
  uint64_t num_events_ = 0;
};

// Server events on their way to the socket. Not thread-safe.
class RealtimeEvents final {
 public:
  explicit RealtimeEvents(RealtimeIds& ids) : ids_(ids) {}

  // Adds an event: its type, an event_id, and `fields`.
  void add(std::string_view type, Json::Object fields);
  // The same without an event_id.
  void add_without_id(std::string_view type, Json::Object fields);

  struct Event {
    std::string type, text;
  };
  const std::vector<Event>& events() const { return events_; }
  std::vector<Event> take() { return std::exchange(events_, {}); }

 private:
  RealtimeIds& ids_;
  std::vector<Event> events_;
};

}  // namespace transept
