#include "base/sliced_call.h"

#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace transept {

SlicedCall::~SlicedCall() {
  drop();
  if (!thread_.joinable()) return;
  is_closing_ = true;
  turn_of_call_.release();
  thread_.join();
}

void SlicedCall::begin(std::function<void()> call) {
  CHECK(!is_under_way(), "one call at a time");
  if (!thread_.joinable()) start_thread();
  call_ = std::move(call);
  has_ended_ = is_dropped_ = false;
}

void SlicedCall::start_thread() {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    log_warning("a long encode is not sliced: a thread cannot be started: ", error.what());
  }
}

bool SlicedCall::run(int64_t num_tasks) {
  CHECK(is_under_way() && num_tasks > 0, "there is no call to run, or nothing of it");
  if (!thread_.joinable()) {  // whole, on the owner's stack
    std::exchange(call_, nullptr)();
    return true;
  }
  num_tasks_left_ = num_tasks;
  hand_over();
  if (has_ended_) call_ = nullptr;
  return has_ended_;
}

void SlicedCall::drop() {
  if (!is_under_way()) return;
  if (thread_.joinable()) {
    is_dropped_ = true;
    hand_over();
  }
  call_ = nullptr;
}

// On the owner's thread; comes back when the call pauses or ends.
void SlicedCall::hand_over() {
  pool_.set_pauser(this);
  turn_of_call_.release();
  turn_of_owner_.acquire();
  pool_.set_pauser(nullptr);
}

// On the call's.
void SlicedCall::pause() {
  turn_of_owner_.release();
  turn_of_call_.acquire();
}

void SlicedCall::work() {
  pool_.pin_caller();
  while (true) {
    turn_of_call_.acquire();
    if (is_closing_) return;
    call_();
    has_ended_ = true;
    turn_of_owner_.release();
  }
}

}  // namespace transept
