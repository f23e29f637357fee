// What is sent to a Redis server and what it answers: commands and replies of the protocol RESP2, by hiredis. A reply
// is untrusted: a reader refuses what is too large, and the functions below what has another shape than the command's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace transept {

using RedisCommand = std::vector<std::string>;  // its name, then its arguments: any bytes

struct RedisValue {
  enum class Kind : uint8_t { kNil, kText, kStatus, kError, kInteger, kArray };
  Kind kind = Kind::kNil;
  std::string text;  // kText (any bytes), kStatus, kError
  int64_t integer = 0;
  std::vector<RedisValue> elements;

  bool is_nil() const { return kind == Kind::kNil; }
  bool is_text(std::string_view expected) const { return kind == Kind::kText && text == expected; }
  bool operator==(const RedisValue&) const = default;
};

// Appends the bytes of a command. REQUIRES: load_redis() has succeeded, as for the reader.
void append_redis_command(const RedisCommand& command, std::string& out);

// Bytes to values. Not thread-safe.
class RedisReader final {
 public:
  static constexpr size_t kMaxElements = size_t{1} << 20;  // of one array
  static constexpr size_t kMaxBytes = size_t{64} << 20;    // that are no whole value yet

  RedisReader();
  // Less than kMaxBytes.
  void set_max_bytes(size_t max_bytes) { max_bytes_ = max_bytes; }
  // Errors: kUnavailable, these bytes are no replies, or too many; nothing can be read behind them.
  Status feed(std::string_view bytes);
  // nullopt: more bytes are needed. Errors: as feed().
  StatusOr<std::optional<RedisValue>> next();

 private:
  struct Free {
    void operator()(void* reader) const;
  };
  std::unique_ptr<void, Free> reader_;
  size_t max_bytes_ = kMaxBytes;
  size_t num_bytes_ = 0;  // since the last value
};

// Errors: that of an error reply. kResourceExhausted: the server's memory is full. kPermissionDenied: a wrong password,
// a command or key that the user may not use. kUnavailable: it starts, or takes no writes. kNotFound: no such group.
// kInvalidArgument: no such database.
// kFailedPrecondition: it is older than Redis 7. kUnimplemented: it is part of a Redis Cluster.
Status redis_status(const RedisValue& value);
// The first error of several replies; one of a command within MULTI comes before EXEC's, which says less.
Status redis_status(std::span<const RedisValue> values);
// Of commands that are tried at the start: the first error, with the command's name. A server whose memory is full is
// none: it is one that can be worked with, and what follows from that error is no news.
Status redis_probe_status(std::span<const RedisCommand> commands, std::span<const RedisValue> replies);

// An entry of a stream.
struct RedisEntry {
  std::string id;
  std::vector<std::pair<std::string, std::string>> fields;  // empty: the entry was deleted

  std::string_view field(std::string_view name) const;  // empty: there is none
};
// Of XRANGE and XCLAIM. Errors of all: kInvalidArgument, another shape.
StatusOr<std::vector<RedisEntry>> redis_entries(const RedisValue& value);
// Of XREADGROUP with one stream; nil: none.
StatusOr<std::vector<RedisEntry>> redis_stream_entries(const RedisValue& value);

// What a group knows of an entry that was given out and is not acknowledged.
struct RedisPending {
  std::string id;
  std::string consumer;
  int64_t idle_ms = 0;
  int64_t num_deliveries = 0;
};
// Of XPENDING with a range that holds one at most; nullopt: none.
StatusOr<std::optional<RedisPending>> redis_pending(const RedisValue& value);
struct RedisConsumer {
  std::string name;
  int64_t num_pending = 0;
  int64_t idle_ms = 0;
};
// Of XINFO CONSUMERS.
StatusOr<std::vector<RedisConsumer>> redis_consumers(const RedisValue& value);
StatusOr<int64_t> redis_integer(const RedisValue& value);
// Of a decimal number of 64 bits.
StatusOr<uint64_t> redis_number(std::string_view text);

}  // namespace transept
