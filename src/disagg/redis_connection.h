// One connection to a Redis server. Used by one thread at a time, but for interrupt().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "disagg/redis_url.h"
#include "disagg/redis_value.h"
#include "net/client_socket.h"

namespace transept {

class RedisConnection final {
 public:
  // Connects, says who it is, chooses the database, and has an answer. Errors name the URL, without its password:
  // kPermissionDenied, user and password are not the server's; kUnavailable; kNotFound, as load_redis().
  static StatusOr<std::unique_ptr<RedisConnection>> open(const RedisUrl& url, TimePoint deadline);

  // Sends the commands at once and reads a reply of each, which may be an error. Errors: kUnavailable, also when there
  // is no answer in time: replies may come later, so each later call has the same error.
  StatusOr<std::vector<RedisValue>> run(std::span<const RedisCommand> commands, TimePoint deadline);
  // Of a reply, from here on: less than RedisReader::kMaxBytes.
  void set_max_reply_bytes(size_t max_bytes) { reader_.set_max_bytes(max_bytes); }
  // Whether run() has failed because of what the server said: a reply is too large, or none at all (RedisReader).
  bool has_refused() const { return has_refused_; }
  // Whether the server has neither closed it nor said anything unasked.
  bool is_idle() const { return socket_.is_idle(); }
  // Ends the connection: run() returns. Another thread may call it.
  void interrupt() const { socket_.shut_down(); }

 private:
  RedisConnection() = default;
  Status connect(const RedisUrl& url, TimePoint deadline);
  StatusOr<std::vector<RedisValue>> exchange(std::span<const RedisCommand> commands, TimePoint deadline);
  StatusOr<RedisValue> read_value(TimePoint deadline);
  Status refuse(Status why);

  ClientSocket socket_;
  RedisReader reader_;
  Status broken_;
  bool has_refused_ = false;
  std::string outgoing_;
  std::vector<char> incoming_;
};

}  // namespace transept
