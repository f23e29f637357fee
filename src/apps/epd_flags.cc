#include "apps/epd_flags.h"

#include <string_view>

#include "apps/cpu_cores.h"
#include "base/environment.h"
#include "startup/replica_cpus.h"

namespace transept {
namespace {

constexpr const char* kGroup = "Separated encoder";

// What the launcher says to each instance itself, and what to do instead.
struct OwnFlag {
  std::string_view name;
  std::string_view instead;
};
constexpr OwnFlag kOwn[] = {
    {"role", "each instance gets its role"},
    {"broker", "the fleet has a broker of its own, or a Redis server by --epd-broker"},
    {"ec-secret-file", "the fleet draws a secret of its own"},
    {"ec-bulk-address", "each instance gets an address"},
    {"instance-url", "instances are reached on this machine"},
    {"ec-namespace", "the fleet has a broker of its own"},
    {"instance-name", "instances are e0, e1, .. and p0, p1, .."},
    {"threads", "--epd-threads has threads of encode and of decode instances"},
};

Status check_alone(const Flags& flags) {
  const std::string epd = str_cat("--epd ", flags.text_or("epd", ""), ": ");
  for (const OwnFlag& own : kOwn) {
    const bool is_default = own.name == "threads" && flags.text_or(own.name, "") == "0";
    if (flags.has(own.name) && !is_default)
      return invalid_argument(epd, flags.name_of(own.name), " does not go with it: ", own.instead);
  }
  if (flags.has("ec-bulk") && flags.text_or("ec-bulk", "") != "zmq") {
    return invalid_argument(epd, flags.name_of("ec-bulk"), " ", flags.text_or("ec-bulk", ""),
                            " does not go with it: rows travel by zmq between the instances of one machine");
  }
  ASSIGN_OR_RETURN(const int64_t replicas, flags.integer("replicas", 1, 256, 1));
  if (replicas == 1) return ok_status();
  return invalid_argument(epd, flags.name_of("replicas"), " ", replicas,
                          " does not go with it: an instance has one engine, and the shape says how many there are");
}

StatusOr<std::optional<EpdPlan>> read_plan(const Flags& flags, const std::vector<int>& available) {
  if (!flags.has("epd")) {
    for (const char* name : {"epd-threads", "epd-broker"}) {
      if (flags.has(name)) return invalid_argument(flags.name_of(name), ": goes with --epd alone");
    }
    return std::optional<EpdPlan>();
  }
  EpdPlan plan;
  ASSIGN_OR_RETURN(plan.shape, parse_epd_shape(flags.text_or("epd", "")));
  std::optional<EpdThreads> threads;
  if (flags.has("epd-threads")) {
    ASSIGN_OR_RETURN(threads, parse_epd_threads(flags.text_or("epd-threads", "")));
  }
  plan.redis_url = flags.text_or("epd-broker", "");
  if (flags.has("epd-broker") && !plan.redis_url.starts_with("redis")) {
    // Not echoed: there may be a password.
    return invalid_argument("--epd-broker: expected redis://HOST[:PORT][/DB]");
  }
  RETURN_IF_ERROR(check_alone(flags));
  // Of one engine with all processors.
  ASSIGN_OR_RETURN(const ReplicaCpus all, plan_replica_cpus(0, 1, flags.text_or("cpu-affinity", "auto"), available));
  plan.instances = plan_epd(plan.shape, threads, all.num_threads, group_by_core(all.cpus));
  return std::optional<EpdPlan>(std::move(plan));
}

}  // namespace

std::vector<FlagSpec> transfer_flags() {
  std::vector<FlagSpec> table = {
      {"ec-transfer-dtype", "float32|bfloat16", "float32",
       "what rows travel as, the same for all instances: bfloat16 halves their bytes and rounds them", kGroup},
      {"ec-fallback", "none|local", "none",
       "what a decode instance does with inputs that encode instances do not encode: none: they fail; local: it loads "
       "the encoder, too, and encodes them itself",
       kGroup},
      {"ec-lease", "SECONDS", "30",
       "how long room for an input is kept for an encode instance that says nothing, the same for all instances: 1 to "
       "3600",
       kGroup},
  };
  keep_common(table, {});
  return table;
}

std::vector<FlagSpec> epd_flags() {
  std::vector<FlagSpec> table = {
      {.name = "epd",
       .value_name = "SHAPE",
       .help = "run encoders and decoders in processes of their own on this machine: 1E1D is one encode and one decode "
               "instance, 2E1D two and one (1 to 64 of each)",
       .group = kGroup},
      {.name = "epd-threads",
       .value_name = "E,D",
       .default_text = "the processors, divided among all",
       .help =
           "compute threads of each encode and of each decode instance; they are pinned to cores of their own, where "
           "there are enough and --cpu-affinity is not none",
       .group = kGroup},
      {.name = "epd-broker",
       .value_name = "URL",
       .default_text = "a broker of its own",
       .help = "a Redis server that the instances find each other by: redis://[USER:PASSWORD@]HOST[:PORT][/DB]",
       .group = kGroup},
  };
  for (FlagSpec& flag : transfer_flags()) table.push_back(std::move(flag));
  return table;
}

StatusOr<std::optional<EpdPlan>> epd_plan(const Flags& flags, const std::vector<int>& available) {
  StatusOr<std::optional<EpdPlan>> plan = read_plan(flags, available);
  if (!plan.ok()) return blame_environment(plan.status(), flags.from_environment());
  return plan;
}

}  // namespace transept
