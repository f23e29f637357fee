#include "apps/launch_environment.h"

#include <charconv>
#include <cstdlib>

#include "base/quoted.h"

namespace transept {
namespace {

constexpr int32_t kMaxProcesses = 1 << 20;

// How each says it. "": it does not.
struct Launcher {
  const char* name;
  const char *size, *rank, *address, *port;
};
constexpr Launcher kLaunchers[] = {
    {"torchrun", "WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"},
    {"LeaderWorkerSet", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX", "LWS_LEADER_ADDRESS", ""},
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "", ""},
    {"mpiexec", "PMI_SIZE", "PMI_RANK", "", ""},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "", ""},
    {"srun", "SLURM_NTASKS", "SLURM_PROCID", "", ""},
};

StatusOr<int32_t> number(const Environment& environment, const char* name, int32_t least, int32_t most) {
  const std::string text = environment(name).value_or("");
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return invalid_argument(name, "=", in_quotes(text), ": expected a number from ", least, " to ", most);
  }
  return value;
}

std::string address_of(const Launcher& launcher, const Environment& environment) {
  if (*launcher.address != '\0') {
    if (const auto address = environment(launcher.address); address.has_value()) return *address;
  }
  // Whoever starts processes may have said it for others.
  if (const auto address = environment("MASTER_ADDR"); address.has_value()) return *address;
  const std::string_view name = launcher.name;
  if (name == "mpirun" && environment("OMPI_COMM_WORLD_LOCAL_SIZE") == environment("OMPI_COMM_WORLD_SIZE")) {
    return "127.0.0.1";
  }
  if (name == "srun") {
    for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
      if (const auto hosts = environment(list); hosts.has_value()) return first_slurm_host(*hosts);
    }
  }
  return "";
}

}  // namespace

Environment process_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

StatusOr<std::optional<LaunchEnvironment>> find_launcher(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (!environment(launcher.size).has_value() || !environment(launcher.rank).has_value()) continue;
    LaunchEnvironment found;
    found.launcher = launcher.name;
    ASSIGN_OR_RETURN(found.size, number(environment, launcher.size, 1, kMaxProcesses));
    if (found.size == 1) return std::optional<LaunchEnvironment>();
    ASSIGN_OR_RETURN(found.rank, number(environment, launcher.rank, 0, found.size - 1));
    found.address = address_of(launcher, environment);
    const char* const port = *launcher.port == '\0' ? "MASTER_PORT" : launcher.port;
    if (environment(port).has_value()) {
      ASSIGN_OR_RETURN(const int32_t value, number(environment, port, 1, UINT16_MAX));
      found.port = static_cast<uint16_t>(value);
    }
    return std::optional<LaunchEnvironment>(std::move(found));
  }
  return std::optional<LaunchEnvironment>();
}

std::string first_slurm_host(std::string_view list) {
  const size_t bracket = list.find('[');
  const size_t comma = list.find(',');
  if (bracket == std::string_view::npos || comma < bracket) return std::string(list.substr(0, comma));
  // The first number of the brackets, and what follows them: "rack[1-2]-a" has "rack1-a".
  const size_t end = list.find(']', bracket);
  if (end == std::string_view::npos) return "";
  const std::string_view numbers = list.substr(bracket + 1, end - bracket - 1);
  std::string host(list.substr(0, bracket));
  host += numbers.substr(0, numbers.find_first_of("-,"));
  const std::string rest = first_slurm_host(list.substr(end + 1));
  return host + rest;
}

}  // namespace transept
