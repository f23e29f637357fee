// What the launcher of --epd starts an instance with. Pure functions: thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/epd_shape.h"
#include "apps/flags.h"

namespace transept {

// Names in the private folder of a fleet. The sockets of instances have theirs, which are shorter: e63.
inline constexpr std::string_view kEpdBroker = "broker", kEpdSecret = "secret";

struct EpdModel {
  std::string folder;
  std::string name;  // that requests give it, if --served-model-name says none
};

// What the instances of a fleet have in common.
struct EpdLinks {
  std::string folder;     // the private one
  std::string redis_url;  // of --epd-broker; "": the broker's socket is in the folder
  std::string ns;         // --ec-namespace there
};

// argv, `transept` first. `flags` are those of the launcher, `table` of its verb. Flags that came from the environment
// are left to it. An encode instance listens on a free port of the loopback, and so does a
// decode instance behind a proxy, which lets the Hosts in that the proxy has; another one listens where the launcher
// was told to.
std::vector<std::string> epd_arguments(const Flags& flags, std::span<const FlagSpec> table, const EpdModel& model,
                                       const EpdInstance& instance, const EpdLinks& links,
                                       bool is_behind_proxy = false);

// `environment` (NAME=VALUE each, ends with null), without what would make the child a launcher, and what
// epd_arguments() says. The URL of a Redis server is in it, since others see arguments, and there may be a password.
std::vector<std::string> epd_environment(const char* const* environment, const EpdLinks& links);

}  // namespace transept
