// What a thread is doing for the caller: a function that would wait for the callback that calls it is refused. One
// value a thread.
#pragma once

#include <utility>

#include "base/status.h"

namespace transept {

enum class Inside {
  kNothing,
  kCallback,  // on a thread that waits for the engine
  kOnReady,   // on an engine's thread
};

class CallbackScope final {
 public:
  explicit CallbackScope(Inside inside) : before_(std::exchange(current(), inside)) {}
  ~CallbackScope() { current() = before_; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  // Errors: kFailedPrecondition.
  static Status check_may_wait() {
    if (current() != Inside::kOnReady) return ok_status();
    return absl::FailedPreconditionError(
        "this call would wait for the engine, and on_ready runs on the engine's thread");
  }
  static Status check_may_free() {
    if (current() == Inside::kNothing) return ok_status();
    return absl::FailedPreconditionError("a model cannot be freed from inside a callback");
  }

 private:
  static Inside& current() {
    thread_local Inside inside = Inside::kNothing;
    return inside;
  }

  const Inside before_;
};

}  // namespace transept
