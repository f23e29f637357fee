// Flags of `transept proxy` and `transept epd status`, and the settings that they give. Pure functions: thread-safe.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "apps/flags.h"
#include "proxy/proxy.h"

namespace transept {

struct ProxySettings {
  std::string broker, ns = "default";
  Proxy::Options proxy;
  std::chrono::milliseconds shutdown_timeout{30000};
};

std::vector<FlagSpec> proxy_flags();
std::vector<FlagSpec> epd_status_flags();

// Errors: a flag that is wrong, or no --broker, by name.
StatusOr<ProxySettings> proxy_settings(const Flags& flags);
StatusOr<std::string> broker_url(const Flags& flags);

}  // namespace transept
