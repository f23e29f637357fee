// One request's answer, between the threads that produce it and the connection that sends it: the unsent bytes, and
// whether each side still takes part. The service's Responder and the connection share ownership. It may outlive the
// connection and the server; its functions then have no effect.
//
// Thread-safe. on_gone callbacks run without the lock; `wake` runs under it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
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
    std::shared_ptr<const std::atomic<bool>> draining;  // read when the answer begins; true: Connection: close
  };

  // `wake` tells the connection to call take(). It is called from any thread, under the lock, so it must only post.
  HttpExchange(Options options, std::function<void()> wake) : options_(std::move(options)), wake_(std::move(wake)) {}

  // ---- The service's side: see Responder. Calls out of order have no effect.
  void respond(const HttpResponse& response);
  void start_stream(const HttpResponse& head);
  void write(std::string_view piece);
  void finish();
  void abandon();
  void start_tunnel(Tunnel tunnel);
  bool is_gone() const;
  bool was_too_slow() const;
  size_t num_unsent_bytes() const;
  void on_gone(std::function<void()> callback);
  double seconds() const { return transept::seconds(SteadyClock().now() - begun_); }
  // Reports that the last Responder is gone: sets needs_answer, or abandons a stream that has begun.
  void let_go();

  // ---- The connection's side.
  struct Outgoing {
    std::string bytes;
    bool is_last = false;       // no bytes follow these
    bool needs_answer = false;  // let_go() was called before an answer began
  };
  Outgoing take();  // the unsent bytes; they count as in flight until note_sent
  void note_sent(size_t num_bytes);
  std::optional<Tunnel> take_tunnel();  // of start_tunnel(), whose head is sent
  void close_after();                   // the connection closes after this answer. REQUIRES: no answer has begun
  // Marks the client as gone (too_slow: it was dropped). The connection calls notify_gone after it.
  void go(bool too_slow);
  void notify_gone();  // calls the on_gone callback, unless the answer has ended; once
  void detach();       // destroys `wake`, which is not called after this

  const std::string& request_id() const { return options_.request_id; }
  bool has_ended() const;
  bool closes() const;  // the connection closes after this answer
  bool was_abandoned() const;
  int status() const;  // of the answer; 0 before it begins
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
  size_t in_flight_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // taken, not yet sent
  std::optional<Tunnel> tunnel_ ABSL_GUARDED_BY(mutex_);
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

// Makes the Responder that the service holds. Its destructor calls let_go().
std::shared_ptr<Responder> make_responder(std::shared_ptr<HttpExchange> exchange);

}  // namespace transept
