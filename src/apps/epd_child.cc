#include "apps/epd_child.h"

#include <algorithm>
#include <string_view>

#include "base/environment.h"
#include "server/server.h"

namespace transept {
namespace {

// The launcher's own; how the model was found; and what epd_arguments() says to each instance.
constexpr std::string_view kNotPassedOn[] = {
    "epd",     "epd-threads", "epd-broker",      "revision",      "download-dir", "cache-dir",
    "role",    "broker",      "ec-secret-file",  "instance-name", "instance-url", "ec-namespace",
    "threads", "replicas",    "ec-bulk-address", "cpu-affinity"};

bool is_passed_on(bool listens_apart, std::string_view flag) {
  const bool is_address = flag == "host" || flag == "port";
  if (is_address && listens_apart) return false;
  return std::ranges::find(kNotPassedOn, flag) == std::end(kNotPassedOn);
}

}  // namespace

std::vector<std::string> epd_arguments(const Flags& flags, std::span<const FlagSpec> table, const EpdModel& model,
                                       const EpdInstance& instance, const EpdLinks& links, bool is_behind_proxy) {
  const bool listens_apart = is_behind_proxy || instance.role == InstanceRole::kEncode;
  std::vector<std::string> arguments = {"transept", "serve"};
  const auto add = [&](std::string_view flag, std::string_view value) {
    arguments.push_back(str_cat("--", flag, "=", value));
  };
  for (const FlagSpec& flag : table) {
    if (!is_passed_on(listens_apart, flag.name) || flags.from_environment().contains(flag.name)) continue;
    std::vector<std::string> values = flags.texts(flag.name);
    if (const auto value = flags.text(flag.name); value.has_value() && !flag.is_repeatable) values = {*value};
    for (const std::string& value : values) add(flag.name, value);
  }
  if (!flags.has("served-model-name")) add("served-model-name", model.name);
  if (listens_apart) {
    add("host", "127.0.0.1");
    add("port", "0");
  }
  if (is_behind_proxy && !flags.has("allowed-host")) {
    // As a server at the proxy's address would have it.
    const std::string host = flags.text_or("host", "127.0.0.1");
    add("allowed-host", is_loopback_host(host) ? host : "*");
  }
  add("role", name(instance.role));
  add("instance-name", instance.name);
  if (links.redis_url.empty()) {
    add("broker", str_cat("local:", links.folder, "/", kEpdBroker));
  } else {
    add("ec-namespace", links.ns);
  }
  add("ec-secret-file", str_cat(links.folder, "/", kEpdSecret));
  add("ec-bulk-address", str_cat("ipc://", links.folder, "/", instance.name));
  add("threads", str_cat(instance.num_threads));
  add("cpu-affinity", instance.cpus);
  arguments.insert(arguments.end(), {"--", model.folder});
  return arguments;
}

std::vector<std::string> epd_environment(const char* const* environment, const EpdLinks& links) {
  std::vector<std::string> kept;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::string_view variable_name = variable.substr(0, variable.find('='));
    const bool is_ours = std::ranges::any_of(
        kNotPassedOn, [&](std::string_view flag) { return environment_name(flag) == variable_name; });
    if (!is_ours) kept.emplace_back(variable);
  }
  if (!links.redis_url.empty()) kept.push_back(str_cat(environment_name("broker"), "=", links.redis_url));
  return kept;
}

}  // namespace transept
