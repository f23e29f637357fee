// Runs the instances of a fleet on one machine (--epd): starts them, passes on what they log, starts again who dies,
// and ends them in order: decode instances first, for they may still ask for encodes, then encode instances. One
// thread; its caller's, which must live as long as the children do. Owns them: none is left when run() returns.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/child_process.h"
#include "apps/restart_policy.h"
#include "base/clock.h"
#include "base/status.h"
#include "encoder_cache/broker.h"

namespace transept {

struct SupervisedChild {
  std::string name;
  InstanceRole role = InstanceRole::kEncode;  // or kDecode
  ChildProcess::Command command;
};

class EpdSupervisor final {
 public:
  struct Options {
    RestartLimits restarts;
    std::function<void()> on_ending = [] {};  // the end was asked for, and no instance has heard of it yet
    // From SIGTERM to a role's instances until those that have not ended are killed.
    Duration end_timeout = std::chrono::seconds(35);
    // How often the fleet was asked to end so far: once, it ends in order; twice, at once.
    std::function<int()> num_interrupts;
    // The line to log when the fleet is ready; nullopt: it is not yet. Asked again and again until then; may wait a
    // second at most.
    std::function<std::optional<std::string>()> ready_line;
    std::function<void(const SupervisedChild&, pid_t)> on_started;  // the first time, and again
    std::function<void(std::string_view line)> write_line;          // what children say
  };

  // Borrows the clock. All functions of `options` are called by run().
  EpdSupervisor(std::vector<SupervisedChild> children, Options options, const Clock& clock);
  ~EpdSupervisor();

  // Returns once every child has ended: the exit code. 0: the end was asked for, and each child that ran then ended
  // with 0; kExitSomeFailed: one did not, or was killed; kExitUsage: a child returned that before the fleet was ready.
  // Errors: a child cannot be started; kUnavailable, one died too often (both name it, and say why). Call once.
  StatusOr<int> run();

 private:
  struct Instance {
    SupervisedChild child;
    RestartPolicy policy;
    std::unique_ptr<ChildProcess> process;  // null: it waits to be started again
    TimePoint start_at = TimePoint::min();
  };

  Status start(Instance& instance);
  StatusOr<std::optional<int>> look_after(Instance& instance);
  StatusOr<std::optional<int>> look_after_all();
  Status start_again_later(Instance& instance, std::string_view what);
  void look_whether_ready();
  // Waits a moment for something to read, and writes it.
  void pass_lines_on();
  void write_rest(const Instance& instance) const;
  void write_line(const Instance& instance, std::string_view line) const;
  // Whether all that ran ended with 0.
  bool end_all();
  bool end_role(InstanceRole role);
  bool take_ends(InstanceRole role);
  void kill_all(InstanceRole role, std::string_view why);
  void signal_all(InstanceRole role, int signal);
  bool is_running(InstanceRole role) const;

  std::vector<Instance> instances_;
  Options options_;
  const Clock& clock_;
  bool is_ready_ = false;
};

}  // namespace transept
