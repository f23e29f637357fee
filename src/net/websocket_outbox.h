// What one WebSocket has to send, between the threads that produce it and the connection that sends it; and what the
// handler asks of the connection besides. Handler and connection share ownership. It may outlive the connection and the
// server; its functions then have no effect.
//
// Thread-safe. `wake` runs under the lock.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "net/websocket.h"

namespace transept {

class WebSocketOutbox final : public WebSocket {
 public:
  // Each message counts as its bytes and this many: those of no bytes must not pile up either.
  static constexpr size_t kMessageOverheadBytes = 64;

  // `wake` tells the connection to look here again. It is called from any thread, under the lock, so it must only post.
  WebSocketOutbox(size_t max_unsent_bytes, std::function<void()> wake)
      : max_unsent_bytes_(max_unsent_bytes), wake_(std::move(wake)) {}

  // ---- The handler's side: see WebSocket.
  void send(std::string message, bool is_text) override;
  void close(uint16_t code, std::string_view why) override;
  void pause_reading() override { set_paused(true); }
  void resume_reading() override { set_paused(false); }
  void set_patient(bool is_patient) override;
  size_t num_unsent_bytes() const override;
  bool is_gone() const override;

  // ---- The connection's side.
  struct Message {
    std::string bytes;
    bool is_text = false;
  };
  struct Close {
    uint16_t code = 0;
    std::string why;  // at most 123 bytes
  };
  // Returns the next message, which counts as in flight until the next call; nullopt: none waits.
  std::optional<Message> take_message();
  // What close() was called with; nullopt: it was not.
  std::optional<Close> asked_close() const;
  bool is_closing() const;  // close() was called
  bool is_paused() const;
  bool is_patient() const;
  bool was_too_slow() const;
  void go();      // marks the client as gone
  void detach();  // destroys `wake`, which is not called after this

 private:
  void set_paused(bool is_paused);
  void wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_unsent_bytes_;
  mutable Mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  std::deque<Message> messages_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0, in_flight_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Close> close_ ABSL_GUARDED_BY(mutex_);
  bool is_paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_patient_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_gone_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_too_slow_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace transept
