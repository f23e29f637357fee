// Keeps a worker of a thread pool off the caller's processor while the worker shares its own with a busy neighbour. A
// worker that rests and wakes is placed where there is room: on the caller's processor it pushes the caller out, and
// the neighbour follows. The system then has all three on one processor now and then, and the pool waits for the
// caller. Where the caller has a busy neighbour of its own, the system places threads better than a rule does: the
// worker is free again for a while.
//
// One a worker, made and used by it. Changes the affinity of the calling thread, within the one that it had at first.
#pragma once

#include <vector>

#include "base/function_ref.h"
#include "base/shared_processor.h"

namespace transept {

class WorkerPlace final {
 public:
  using Duration = SharedProcessor::Duration;

  // The caller counts as shared if it waited for kDelayShare of kWindowsToBegin consecutive windows of kWindow
  // (SharedProcessor's) although the worker kept off. Then the worker stays free for kFree.
  static constexpr Duration kFree = std::chrono::seconds(1);

  // Of a moment between two calls: whether the worker shares its processor, and where the caller ran last (-1: not
  // known). `caller_delay` returns the caller's Times::run_delay; it is called once a window.
  void update(Duration now, bool is_shared, int caller_cpu, FunctionRef<Duration()> caller_delay);

  // The processor that the worker keeps off; -1: none.
  int avoided_cpu() const { return avoided_cpu_; }

 private:
  // No system call if nothing changes. No effect if no processor would be left, or if the system refuses.
  void avoid(int cpu);

  std::vector<int> own_cpus_;
  int avoided_cpu_ = -1;
  bool has_window_ = false;  // while the worker keeps off
  Duration window_began_{}, window_delay_{}, free_until_{};
  int num_waited_ = 0;  // consecutive windows of which the caller waited for so much
};

}  // namespace transept
