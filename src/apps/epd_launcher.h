// The launcher of a fleet on one machine (`transept serve MODEL --epd 1E1D`): the broker in this process, and the proxy
// before several decode instances; each instance in a child.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/epd_child.h"
#include "apps/epd_flags.h"
#include "apps/restart_policy.h"
#include "base/clock.h"
#include "base/status.h"
#include "proxy/proxy.h"

namespace transept {

struct EpdSettings {
  EpdPlan plan;
  EpdModel model;
  Duration shutdown_timeout = std::chrono::seconds(30);  // of an instance
  std::optional<Proxy::Options> proxy;                   // before several decode instances; nullopt: there is one
  // Others are for tests.
  std::string program = "/proc/self/exe";  // also once a newer version lies in its place
  RestartLimits restarts;
  std::function<int()> num_interrupts;  // null: the process's (apps/interrupt_count.h)
};

// Runs the fleet until it is asked to end: the exit code (apps/epd_supervisor.h). Logs what runs where, and when all is
// ready. `flags` and `table`: as epd_arguments(). Call on the main thread. Errors: no folder, no broker (load_zmq()),
// and those of EpdSupervisor::run().
StatusOr<int> run_epd(const Flags& flags, std::span<const FlagSpec> table, const EpdSettings& settings);

}  // namespace transept
