// The way of a broker to its Redis server: connections for its calls, each used by one call at a time, and a thread
// that looks after them. There is one while calls wait for each other less than 5 ms; a server that is far away gets up
// to kMaxConnections. When there were no calls for 250 ms, the thread asks for a sign of life; a server that gives none
// for its answer's time, or whose connection breaks, is away. The thread connects again after 50 ms, doubling to a
// second. Thread-safe.
//
// A call waits that time at most for its turn, and in its turn that time at most for the server.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/redis_connection.h"

namespace transept {

class RedisLink final {
 public:
  static constexpr Duration kAnswer = std::chrono::seconds(1);
  static constexpr size_t kMaxConnections = 4;

  // `answer`: the longest time that the server may need. Errors: as RedisConnection::open().
  static StatusOr<std::unique_ptr<RedisLink>> open(const RedisUrl& url, Duration answer = kAnswer);
  // No turn is in use, and no connection that connect() has made.
  ~RedisLink();
  RedisLink(const RedisLink&) = delete;
  RedisLink& operator=(const RedisLink&) = delete;

  // A connection, while this value lives. A call's steps share one answer's time.
  class Turn final {
   public:
    Turn(Turn&& other) noexcept
        : link_(std::exchange(other.link_, nullptr)),
          connection_(std::move(other.connection_)),
          deadline_(other.deadline_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn();

    // As RedisConnection::run().
    StatusOr<std::vector<RedisValue>> run(std::span<const RedisCommand> commands);
    StatusOr<std::vector<RedisValue>> run(std::initializer_list<RedisCommand> commands) {
      return run(std::span(commands.begin(), commands.size()));
    }

   private:
    friend class RedisLink;
    Turn(RedisLink* link, std::unique_ptr<RedisConnection> connection, TimePoint deadline)
        : link_(link), connection_(std::move(connection)), deadline_(deadline) {}
    RedisLink* link_;
    std::unique_ptr<RedisConnection> connection_;
    TimePoint deadline_;
  };
  // Errors: kUnavailable, the server is away, or other calls wait for it all the time.
  StatusOr<Turn> turn();
  // A turn of one step.
  StatusOr<std::vector<RedisValue>> run(std::initializer_list<RedisCommand> commands);

  Duration answer() const { return answer_; }
  // A further connection, for reads that wait. Errors: kUnavailable, at once if the server is away.
  StatusOr<std::unique_ptr<RedisConnection>> connect();
  // A further connection has broken: the thread is to look now.
  void suspect();

  // `tell`: as Broker::on_path().
  void on_path(std::function<void(bool is_away)> tell);

 private:
  RedisLink(RedisUrl url, Duration answer, std::unique_ptr<RedisConnection> connection);
  std::unique_ptr<RedisConnection> take_idle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<std::unique_ptr<RedisConnection>> wait_for_idle(TimePoint open_at, TimePoint deadline);
  Status away() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void lose(const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void look_after();
  void look();       // until the server is away, or the link stops
  void come_back();  // until the server is back, or the link stops

  const RedisUrl url_;
  const Duration answer_;
  Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_suspect_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<RedisConnection>> idle_ ABSL_GUARDED_BY(mutex_);
  size_t num_turns_ ABSL_GUARDED_BY(mutex_) = 0;  // that have a connection, or open one
  bool is_away_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint heard_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  Status why_away_ ABSL_GUARDED_BY(mutex_);
  std::function<void(bool)> tell_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace transept
