#include "apps/machine_checks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "apps/memory_bandwidth.h"
#include "apps/stats_json.h"
#include "base/cpus.h"
#include "base/descriptor_limit.h"
#include "base/isa.h"
#include "base/strings.h"
#include "base/system_memory.h"
#include "base/thread_pool.h"
#include "hub/hub_settings.h"
#include "hub/transfer.h"
#include "media/audio_reader.h"

namespace transept {
namespace {

namespace fs = std::filesystem;
using State = MachineCheck::State;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) return std::string(trim(line.substr(colon + 1)));
  }
  return "a processor without a name in /proc/cpuinfo";
}

MachineCheck check_processor() {
  const Isa isa = detect_isa();
  MachineCheck check{.name = "processor", .found = str_cat(processor_name(), "; kernels ", isa_name(isa))};
  check.data = {{"isa", isa_name(isa)}, {"model", processor_name()}};
  if (isa == Isa::kGeneric) {
    check.state = State::kCouldBeBetter;
    check.remedy =
        "without AVX2 products are several times slower: take a processor of 2013 or later, or let the "
        "virtual machine show its instructions";
  }
  return check;
}

std::string num_threads_text(int count) { return str_cat(count, count == 1 ? " thread" : " threads"); }

MachineCheck check_threads() {
  const int available = num_available_cpus();
  const auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const std::vector<int> cpus = available_cpus();
  MachineCheck check{
      .name = "threads",
      .found = str_cat(available, " of ", online, " processors may be used (", format_cpu_list(cpus), ")")};
  const std::optional<double> quota = parse_cpu_max(read_line("/sys/fs/cgroup/cpu.max"));
  check.data = {{"processors", available},
                {"processors_online", online},
                {"cgroup_processors", quota.has_value() ? Json(*quota) : Json()}};
  if (quota.has_value() && *quota + 0.01 < available) {
    check.state = State::kCouldBeBetter;
    check.found += str_cat("; the control group grants the time of ", fixed(*quota, 1));
    check.remedy = str_cat("threads that are stopped make all others wait: give --threads ",
                           std::max(1, static_cast<int>(*quota)), ", or raise the limit (cpu.max)");
  } else if (available < online) {
    check.state = State::kCouldBeBetter;
    check.remedy = "taskset, systemd's CPUAffinity or the container's cpuset sets the others apart";
  }
  return check;
}

MachineCheck check_memory() {
  const uint64_t available = available_memory_bytes(), total = total_memory_bytes();
  MachineCheck check{.name = "memory",
                     .found = str_cat(format_bytes(available), " of ", format_bytes(total), " are free")};
  check.data = {{"available_bytes", available}, {"total_bytes", total}};
  if (available < kGiB) {
    check.state = available < 256 * kMiB ? State::kWrong : State::kCouldBeBetter;
    check.remedy =
        "end other programs or raise the control group's limit (memory.max); --kv-cache-memory, "
        "--max-num-batched-tokens and --quantization int8 make a model smaller";
  }
  return check;
}

MachineCheck check_bandwidth() {
  const double bandwidth = measure_memory_bandwidth(num_available_cpus());
  MachineCheck check{.name = "bandwidth",
                     .found = str_cat(fixed(bandwidth / 1e9, 1), " GB/s are read from memory by ",
                                      num_threads_text(num_available_cpus()), " (measured)")};
  check.data = {{"bytes_per_s", bandwidth}};
  if (bandwidth < 4e9) {
    check.state = State::kCouldBeBetter;
    check.remedy =
        "each decoding step reads the decoder's weights once: other programs, or an emulated machine, take "
        "the bandwidth; --quantization int8 reads a quarter";
  }
  return check;
}

MachineCheck check_huge_pages() {
  const std::string modes = read_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t begin = modes.find('['), end = modes.find(']');
  const std::string mode =
      begin != std::string::npos && end != std::string::npos ? modes.substr(begin + 1, end - begin - 1) : "none";
  MachineCheck check{.name = "huge-pages", .found = str_cat("transparent huge pages: ", mode)};
  check.data = {{"mode", mode}};
  if (mode != "always" && mode != "madvise") {
    check.state = State::kCouldBeBetter;
    check.remedy = "products look up fewer pages with: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  return check;
}

MachineCheck check_files() {
  const uint64_t limit = raise_descriptor_limit();
  MachineCheck check{.name = "files", .found = str_cat("at most ", limit, " open files and connections (ulimit -n)")};
  check.data = {{"limit", limit}};
  if (limit < 1024) {
    check.state = State::kCouldBeBetter;
    check.remedy = "raise ulimit -n, or LimitNOFILE of the service: serve takes fewer connections";
  }
  return check;
}

// The nearest folder that exists.
fs::path existing(fs::path path) {
  std::error_code error;
  while (!path.empty() && !fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path.empty() ? "." : path;
}

MachineCheck check_cache() {
  const std::string folder = hub_cache_folder();
  MachineCheck check{.name = "model-cache", .found = folder};
  if (folder.empty()) {
    check.state = State::kWrong;
    check.found = "no folder: HOME is not set";
    check.remedy = "set HF_HUB_CACHE to a folder for models";
    return check;
  }
  const fs::path present = existing(folder);
  std::error_code error;
  const fs::space_info space = fs::space(present, error);
  const bool is_writable = ::access(present.c_str(), W_OK | X_OK) == 0 && fs::is_directory(present, error);
  check.data = {{"folder", folder}, {"exists", present == fs::path(folder)}, {"free_bytes", uint64_t{space.available}}};
  check.found += str_cat(present == fs::path(folder) ? "" : " (made when it is needed)", ", ",
                         format_bytes(space.available), " free");
  if (!is_writable) {
    check.state = State::kWrong;
    check.found += str_cat("; ", present.string(), " cannot be written");
    check.remedy = "set HF_HUB_CACHE to a folder that this user may write";
  } else if (space.available < kGiB) {
    check.state = State::kCouldBeBetter;
    check.remedy = "a model takes from 0.1 to 10 GiB: make room, or set HF_HUB_CACHE to another disk";
  }
  return check;
}

MachineCheck check_port(uint16_t port) {
  MachineCheck check{.name = "port", .found = str_cat("127.0.0.1:", port, " is free for serve")};
  check.data = {{"port", static_cast<int64_t>(port)}};
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool is_free = fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int why = errno;
  if (fd >= 0) ::close(fd);
  if (!is_free) {
    check.state = State::kWrong;
    check.found = str_cat("127.0.0.1:", port, ": ", std::strerror(why));
    check.remedy = "give serve another --port, or end the program that listens there";
  }
  return check;
}

MachineCheck check_libcurl() {
  const StatusOr<std::string> library = Transfer::library();
  MachineCheck check{.name = "libcurl"};
  check.data = {{"is_there", library.ok()}};
  if (!library.ok()) {
    check.state = State::kWrong;
    check.found = error_message(library.status());
    check.remedy = "folders and files are read without it (Debian and Ubuntu: apt install libcurl4 ca-certificates)";
    return check;
  }
  check.found = str_cat(*library, ": models are fetched by name");
  const StatusOr<HubSettings> settings = HubSettings::from_environment();
  const std::string given = settings.ok() ? settings->ca_file : "";
  const std::string certificates = given.empty() ? Transfer::default_certificates() : given;
  check.data.emplace_back("certificates", certificates);
  std::error_code error;
  if (!certificates.empty() && !fs::exists(certificates, error)) {
    check.state = State::kWrong;
    check.found += str_cat("; there are no certificates at ", certificates);
    check.remedy = "no hub is trusted without them (Debian and Ubuntu: apt install ca-certificates)";
  }
  return check;
}

MachineCheck check_ffmpeg() {
  const Status loaded = load_audio_decoders();
  const std::string version = audio_decoders_version();
  MachineCheck check{.name = "ffmpeg", .found = str_cat("FFmpeg ", version, ": audio of every container can be read")};
  check.data = {{"is_there", loaded.ok()}, {"version", version}};
  if (!loaded.ok()) {
    check.state = State::kWrong;
    check.found = error_message(loaded);
    check.remedy = "transcribe reads WAV alone without them: install them (Debian and Ubuntu: apt install ffmpeg)";
  }
  return check;
}

}  // namespace

std::string_view state_name(State state) {
  switch (state) {
    case State::kGood: return "good";
    case State::kCouldBeBetter: return "better";
    case State::kWrong: return "wrong";
  }
  return "";
}

std::vector<MachineCheck> check_machine(const MachineCheckOptions& options) {
  std::vector<MachineCheck> checks = {check_processor(), check_threads(), check_memory()};
  if (options.measures_bandwidth) checks.push_back(check_bandwidth());
  checks.push_back(check_huge_pages());
  checks.push_back(check_files());
  checks.push_back(check_cache());
  checks.push_back(check_port(options.port));
  checks.push_back(check_ffmpeg());
  checks.push_back(check_libcurl());
  return checks;
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const std::vector<std::string_view> parts = split(trim(text), ' ');
  if (parts.size() != 2) return std::nullopt;
  const double quota = std::atof(std::string(parts[0]).c_str()), period = std::atof(std::string(parts[1]).c_str());
  if (!(quota > 0) || !(period > 0)) return std::nullopt;
  return quota / period;
}

std::string hub_cache_folder() {
  const auto variable = [](const char* name) {
    return std::string(std::getenv(name) != nullptr ? std::getenv(name) : "");
  };
  if (std::string folder = variable("HF_HUB_CACHE"); !folder.empty()) return folder;
  if (std::string folder = variable("HF_HOME"); !folder.empty()) return folder + "/hub";
  if (std::string folder = variable("XDG_CACHE_HOME"); !folder.empty()) return folder + "/huggingface/hub";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/huggingface/hub";
}

}  // namespace transept
