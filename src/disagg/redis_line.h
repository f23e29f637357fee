// A connection of one thread to a Redis server, which is made again when it has broken. For traffic that must not take
// turns with a broker's calls (redis_link.h): rows, and reads that wait. Used by its thread alone, but for stop().
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "disagg/redis_connection.h"

namespace transept {

class RedisLine final {
 public:
  // `answer`: the longest time that the server may need. Connects when it is first used.
  RedisLine(RedisUrl url, Duration answer) : url_(std::move(url)), answer_(answer) {}

  // As RedisConnection::run(), for an answer that the server may put off for `wait`. Errors: kUnavailable, at once for
  // 50 ms after the connection broke, doubling to a second while the server is away, and for good after stop().
  StatusOr<std::vector<RedisValue>> run(std::span<const RedisCommand> commands, Duration wait = {});
  StatusOr<std::vector<RedisValue>> run(std::initializer_list<RedisCommand> commands) {
    return run(std::span(commands.begin(), commands.size()));
  }

  // When run() may connect; in the past: it has a connection, or would try now.
  TimePoint again_at() const { return again_at_; }
  // run() returns. Any thread may call it.
  void stop();

 private:
  Status connect();
  void lose(const Status& why);

  const RedisUrl url_;
  const Duration answer_;
  TimePoint again_at_ = TimePoint::min();
  Duration pause_{};
  Status why_away_;
  Mutex mutex_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<RedisConnection> connection_ ABSL_GUARDED_BY(mutex_);  // replaced by the thread alone
};

}  // namespace transept
