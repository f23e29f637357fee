// Carries one request's outputs from the engine thread to its reader: holds what the engine has pushed and the reader
// has not taken. A slow reader never delays the engine, and costs no more memory than the answer itself: unread pieces
// are merged into one.
//
// Owned jointly by the reader's RequestStream and the engine. Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "core/request_output.h"

namespace transept {

class RequestChannel final {
 public:
  // `on_ready` (may be empty): see RequestSpec.
  RequestChannel(std::string request_id, std::function<void()> on_ready)
      : request_id_(std::move(request_id)), on_ready_(std::move(on_ready)) {}

  const std::string& request_id() const { return request_id_; }

  // ---- Engine thread. Nothing follows a finished output or an error.
  void push(RequestOutput&& output);
  void fail(const Status& error);

  // ---- Any thread
  // Ends it as fail() does unless it has ended; what the engine says of it later is dropped.
  void give_up(const Status& error);

  // ---- Reader
  // Returns what is new; waits for it up to `timeout` (none: no limit). nullopt: nothing came. Returns what was pushed
  // before an error first.
  std::optional<StatusOr<RequestOutput>> take(std::optional<Duration> timeout);
  // Whether the finished output or the error was taken.
  bool has_ended() const;
  // Ends the reading. When it returns, on_ready is not running (unless on_ready itself calls close()) and never will.
  // Returns true if the request had not ended.
  bool close();

 private:
  bool has_news() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return pending_.has_value() || (ended_ && !error_.ok() && !end_was_taken_);
  }
  // Until another thread's on_ready has returned.
  void await_reader() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void announce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void call_reader();

  const std::string request_id_;
  const std::function<void()> on_ready_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<RequestOutput> pending_ ABSL_GUARDED_BY(mutex_);
  Status error_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // nothing more will be pushed
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
  bool end_was_taken_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread::id notifier_ ABSL_GUARDED_BY(mutex_);  // the thread inside on_ready_
};

}  // namespace transept
