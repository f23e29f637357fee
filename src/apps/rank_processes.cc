#include "apps/rank_processes.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "apps/engine_flags.h"
#include "apps/epd_broker.h"
#include "base/cpus.h"
#include "startup/rank_worker.h"
#include "startup/replica_cpus.h"

namespace transept {
namespace {

constexpr size_t kOutboxBytes = size_t{4} << 20, kMailboxBytes = size_t{1} << 16;
constexpr auto kEndTimeout = std::chrono::seconds(1);
constexpr int kLookMs = 500, kLookWhileEndingMs = 10;

// How the model was found, and what rank_arguments() says itself.
constexpr std::string_view kNotPassedOn[] = {"revision",  "download-dir", "cache-dir", "tensor-parallel-size",
                                             "log-level", "quiet"};

}  // namespace

std::vector<std::string> rank_arguments(const Flags& flags, const EngineConfig& config, int rank, int64_t driver) {
  std::vector<std::string> arguments = {"transept", "rank", str_cat(rank), str_cat(driver)};
  for (const FlagSpec& flag : engine_flags()) {
    const bool is_passed_on = std::ranges::find(kNotPassedOn, flag.name) == std::end(kNotPassedOn);
    if (!is_passed_on || flags.from_environment().contains(flag.name)) continue;
    if (const auto value = flags.text(flag.name); value.has_value()) {
      arguments.push_back(str_cat("--", flag.name, "=", *value));
    }
  }
  // What one rank would say of the model, the first says.
  arguments.emplace_back("--log-level=error");
  arguments.push_back(str_cat("--tensor-parallel-size=", config.tensor_parallel_size));
  arguments.insert(arguments.end(), {"--", config.model});
  return arguments;
}

SharedCommunicator::Options rank_options(const EngineConfig& config) {
  SharedCommunicator::Options options{.rank_timeout = kRankLoadTimeout, .spins = false};
  const std::vector<int> available = available_cpus();
  const StatusOr<ReplicaCpus> cpus =
      plan_replica_cpus(config.threads, config.tensor_parallel_size, config.cpu_affinity, available);
  if (cpus.ok()) options.spins = cpus->num_threads * config.tensor_parallel_size <= std::ssize(available);
  return options;
}

StatusOr<std::shared_ptr<RankProcesses>> RankProcesses::start(const Flags& flags, const EngineConfig& config) {
  RETURN_IF_ERROR(check_rank_flags(config));
  if (config.tensor_parallel_size == 1) return std::shared_ptr<RankProcesses>();
  if (flags.has("epd")) {
    return unimplemented("--tensor-parallel-size ", config.tensor_parallel_size, ": not with --epd: give 1");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<SharedGroup> group, SharedGroup::create({.num_ranks = config.tensor_parallel_size,
                                                                            .outbox_bytes = kOutboxBytes,
                                                                            .mailbox_bytes = kMailboxBytes}));
  std::vector<std::string> environment;
  for (char** variable = ::environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  std::vector<Child> children;
  for (int rank = 1; rank < config.tensor_parallel_size; ++rank) {
    children.push_back({.rank = rank,
                        .command = {.program = "/proc/self/exe",
                                    .arguments = rank_arguments(flags, config, rank, ::getpid()),
                                    .environment = environment,
                                    .inherited = group->fd()}});
  }
  return std::shared_ptr<RankProcesses>(new RankProcesses(std::move(group), rank_options(config), std::move(children)));
}

RankProcesses::RankProcesses(std::unique_ptr<SharedGroup> group, const SharedCommunicator::Options& options,
                             std::vector<Child> children)
    : group_(std::move(group)), communicator_(*group_, 0, options), children_(std::move(children)) {
  thread_ = std::thread([this] { run(); });
}

RankProcesses::~RankProcesses() {
  is_ending_ = true;
  // Those that wait for anything else than their end.
  communicator_.fail(absl::CancelledError("the first rank has ended"));
  thread_.join();
}

std::shared_ptr<Communicator> RankProcesses::communicator(const std::shared_ptr<RankProcesses>& ranks) {
  return ranks == nullptr ? nullptr : std::shared_ptr<Communicator>(ranks, &ranks->communicator_);
}

// ---- The thread of the children

void RankProcesses::run() {
  std::optional<TimePoint> kill_at;
  bool is_left = start_all();
  while (is_left) {
    wait_for_lines();
    is_left = false;
    for (Child& child : children_) is_left = look_after(child) || is_left;
    if (!is_ending_) continue;
    const TimePoint now = std::chrono::steady_clock::now();
    if (!kill_at.has_value()) kill_at = now + kEndTimeout;
    if (now >= *kill_at) break;
  }
  children_.clear();  // kills those that are left
}

bool RankProcesses::start_all() {
  for (Child& child : children_) {
    StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::start(child.command);
    if (!process.ok()) {
      communicator_.fail(with_prefix(process.status(), str_cat("rank ", child.rank)));
      return std::ranges::any_of(children_, [](const Child& other) { return other.process != nullptr; });
    }
    child.process = std::move(process).value();
  }
  return true;
}

// Passes on what it says. False: it has ended.
bool RankProcesses::look_after(Child& child) {
  if (child.process == nullptr) return false;
  const std::optional<ChildEnd> end = child.process->poll();
  for (const std::string& line : child.process->read_lines()) {
    write_child_line(str_cat("[rank ", child.rank, "] ", line));
  }
  if (!end.has_value()) return true;
  if (!is_ending_) {
    communicator_.fail(
        absl::UnavailableError(str_cat("rank ", child.rank, " (pid ", child.process->pid(), ") ", end->text())));
  }
  child.process.reset();
  return false;
}

void RankProcesses::wait_for_lines() const {
  std::vector<pollfd> fds;
  for (const Child& child : children_) {
    if (child.process != nullptr && child.process->descriptor() >= 0) {
      fds.push_back({.fd = child.process->descriptor(), .events = POLLIN, .revents = 0});
    }
  }
  const bool is_deaf = std::ssize(fds) < std::ranges::count_if(
                                             children_, [](const Child& child) { return child.process != nullptr; });
  ::poll(fds.data(), fds.size(), is_ending_ || is_deaf ? kLookWhileEndingMs : kLookMs);
}

}  // namespace transept
