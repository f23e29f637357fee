// One request's answer between the threads that make it and the connection that sends it: bytes that wait, and which
// side has gone. Responders (of the service) and one connection hold it together; it may outlive the connection and the
// server, and does nothing from then on.
//
// Thread-safe. No lock is held while a callback runs.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "net/http_service.h"

namespace transept {

class HttpExchange final {
 public:
  struct Options {
    bool is_head = false;  // the answer has no body
    int minor_version = 1;
    bool keep_alive = true;
    std::string request_id;
    size_t max_unsent_bytes = 4 << 20;
    std::shared_ptr<const std::atomic<bool>> draining;  // read when the answer begins: Connection: close
  };

  // `wake`: the connection should look. Called by any thread, so it must only post; given up by detach.
  HttpExchange(Options options, std::function<void()> wake) : options_(std::move(options)), wake_(std::move(wake)) {}

  // ---- The service's side: see Responder.
  void respond(const HttpResponse& response);
  void start_stream(const HttpResponse& head);
  void write(std::string_view piece);
  void finish();
  void abandon();
  bool is_gone() const;
  bool was_too_slow() const;
  size_t num_unsent_bytes() const;
  void on_gone(std::function<void()> callback);
  double seconds() const { return transept::seconds(SteadyClock().now() - begun_); }
  // No thread can answer any more: the connection is told (needs_answer), or a stream that was begun is abandoned.
  void let_go();

  // ---- The connection's side.
  struct Outgoing {
    std::string bytes;
    bool is_last = false;       // nothing comes behind these bytes
    bool needs_answer = false;  // it was let go of without one
  };
  Outgoing take();
  void note_sent(size_t num_bytes);
  void close_after();  // REQUIRES: no answer was begun
  // The client has gone (too_slow: was dropped). The connection calls notify_gone behind it.
  void go(bool too_slow);
  void notify_gone();
  void detach();  // the connection is done with it: `wake` is not called from here on

  const std::string& request_id() const { return options_.request_id; }
  bool has_ended() const;
  bool closes() const;  // the connection is not used any more behind this answer
  bool was_abandoned() const;
  int status() const;  // of what was answered; 0 before
  uint64_t num_sent_bytes() const;

 private:
  void begin(const HttpResponse& response, bool is_stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void append_piece(std::string_view piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void wake(bool is_urgent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const TimePoint begun_ = SteadyClock().now();
  mutable Mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_gone_ ABSL_GUARDED_BY(mutex_);
  std::string unsent_ ABSL_GUARDED_BY(mutex_);
  size_t in_flight_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // taken, and not sent
  uint64_t sent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int status_ ABSL_GUARDED_BY(mutex_) = 0;
  bool keep_alive_ ABSL_GUARDED_BY(mutex_) = options_.keep_alive;
  bool is_chunked_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_body_ ABSL_GUARDED_BY(mutex_) = true;
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_let_go_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_gone_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_too_slow_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_notified_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_awake_ ABSL_GUARDED_BY(mutex_) = false;
};

// What a service holds; when the last holder lets go, the exchange is let go of.
std::shared_ptr<Responder> make_responder(std::shared_ptr<HttpExchange> exchange);

}  // namespace transept
