// For tests of the engine's thread: FakeExecutor's answers, but a step ends only when the test allows it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "base/mutex.h"
#include "rank/fake_executor_testing.h"

namespace transept::testing {

// How many more steps may end. Thread-safe; shared by the test and its executor.
class StepGate final {
 public:
  void open_for(int64_t num_steps) {
    const MutexLock lock(mutex_);
    num_allowed_ += num_steps;
    changed_.notify_all();
  }
  // Allows one more step, unless one is allowed already: repeated calls let steps pass one by one.
  void open_for_next() {
    const MutexLock lock(mutex_);
    num_allowed_ = std::max<int64_t>(num_allowed_, 1);
    changed_.notify_all();
  }
  void open() {
    const MutexLock lock(mutex_);
    num_allowed_ = std::numeric_limits<int64_t>::max() / 2;
    changed_.notify_all();
  }
  // Makes the step that waits at the gate, and all after it, end with an error.
  void fail() {
    const MutexLock lock(mutex_);
    fails_ = true;
    changed_.notify_all();
  }
  // Waits until a step stands at the closed gate: everything before it has been handled.
  void wait_for_step() {
    const MutexLock lock(mutex_);
    while (!is_waiting_ || num_allowed_ > 0) changed_.wait(mutex_);
  }

  // Engine thread.
  Status pass() {
    const MutexLock lock(mutex_);
    is_waiting_ = true;
    changed_.notify_all();
    while (num_allowed_ == 0 && !fails_) changed_.wait(mutex_);
    is_waiting_ = false;
    if (fails_) return absl::InternalError("the device is gone");
    --num_allowed_;
    return ok_status();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int64_t num_allowed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_waiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool fails_ ABSL_GUARDED_BY(mutex_) = false;
};

class GatedExecutor final : public Executor {
 public:
  explicit GatedExecutor(std::shared_ptr<StepGate> gate) : gate_(std::move(gate)) {}

  const ExecutorInfo& info() const override { return fake_.info(); }
  Status submit(const StepPlan& plan) override { return fake_.submit(plan); }
  Status collect(uint64_t step, StepOutput& output) override {
    RETURN_IF_ERROR(gate_->pass());
    return fake_.collect(step, output);
  }
  ExecutorStats stats() const override { return fake_.stats(); }

 private:
  FakeExecutor fake_;
  std::shared_ptr<StepGate> gate_;
};

}  // namespace transept::testing
