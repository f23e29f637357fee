// Which of several processes this one is, and where the first one is, as those that start processes say it by the
// environment: torchrun, LeaderWorkerSet, Open MPI, MPICH's kind (PMI), Slurm. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

struct LaunchEnvironment {
  std::string launcher;  // "torchrun", for messages
  int32_t size = 1, rank = 0;
  std::string address;  // of the first process's host; "": the launcher does not say it
  std::optional<uint16_t> port;
};

// The value of a variable; nullopt: it is not set.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;
Environment process_environment();

// What the first of these says whose variables are set. nullopt: none are, or it has started one process. Errors name
// the variable: it is no number, or a rank that there is not.
StatusOr<std::optional<LaunchEnvironment>> find_launcher(const Environment& environment);

// The first host of a list as Slurm writes it: "node[07-09,12],login" has "node07". "": the list is none.
std::string first_slurm_host(std::string_view list);

}  // namespace transept
