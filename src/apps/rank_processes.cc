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

constexpr size_t kOutboxBytes = size_t{4} << 20, kMailboxBytes = size_t{4} << 20;
constexpr auto kEndTimeout = std::chrono::seconds(1);
constexpr int kLookMs = 500, kLookWhileEndingMs = 10;

// How the model was found, and what rank_arguments() says itself.
constexpr std::string_view kNotPassedOn[] = {
    "revision",  "download-dir", "cache-dir",   "tensor-parallel-size",  "log-level", "quiet", "nnodes",
    "node-rank", "master-addr",  "master-port", "pipeline-parallel-size"};

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
  arguments.push_back(str_cat("--pipeline-parallel-size=", config.pipeline_parallel_size));
  arguments.push_back(str_cat("--nnodes=", config.num_nodes));
  if (config.num_nodes > 1) {
    arguments.push_back(str_cat("--node-rank=", config.node_rank));
    arguments.push_back(str_cat("--master-addr=", config.master_addr));
    arguments.push_back(str_cat("--master-port=", config.master_port));
  }
  arguments.insert(arguments.end(), {"--", config.model});
  return arguments;
}

SharedCommunicator::Options rank_options(const EngineConfig& config) {
  SharedCommunicator::Options options{.rank_timeout = kRankLoadTimeout, .spins = false};
  const std::vector<int> available = available_cpus();
  const StatusOr<ReplicaCpus> cpus =
      plan_replica_cpus(config.threads, config.ranks_per_node(), config.cpu_affinity, available);
  if (cpus.ok()) options.spins = cpus->num_threads * config.num_ranks() <= std::ssize(available);
  return options;
}

StatusOr<std::shared_ptr<RankProcesses>> RankProcesses::start(const Flags& flags, const EngineConfig& config) {
  RETURN_IF_ERROR(check_rank_flags(config));
  if (config.num_ranks() == 1) return std::shared_ptr<RankProcesses>();
  if (flags.has("epd")) {
    return unimplemented(config.ranks_flag(), ": not with --epd: give 1");
  }
  std::shared_ptr<RankProcesses> ranks(new RankProcesses);
  if (config.num_nodes > 1) {
    ranks->start_children(flags, config, -1);
    const auto check = [&] {
      const MutexLock lock(ranks->mutex_);
      return ranks->early_failure_.value_or(ok_status());
    };
    ASSIGN_OR_RETURN(auto met, meet_other_nodes(flags, config, config.first_rank_of_node(), check));
    const MutexLock lock(ranks->mutex_);
    ranks->communicator_ = std::move(met);
    if (ranks->early_failure_.has_value()) ranks->communicator_->fail(*ranks->early_failure_);
    return ranks;
  }
  ASSIGN_OR_RETURN(ranks->group_, SharedGroup::create({.num_ranks = config.num_ranks(),
                                                       .outbox_bytes = kOutboxBytes,
                                                       .mailbox_bytes = kMailboxBytes}));
  {
    const MutexLock lock(ranks->mutex_);
    ranks->communicator_ = std::make_unique<SharedCommunicator>(*ranks->group_, 0, rank_options(config));
  }
  ranks->start_children(flags, config, ranks->group_->fd());
  return ranks;
}

void RankProcesses::start_children(const Flags& flags, const EngineConfig& config, int inherited) {
  std::vector<std::string> environment;
  for (char** variable = ::environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  const int first = config.first_rank_of_node();
  for (int rank = first + 1; rank < first + config.ranks_per_node(); ++rank) {
    children_.push_back({.rank = rank,
                         .command = {.program = "/proc/self/exe",
                                     .arguments = rank_arguments(flags, config, rank, ::getpid()),
                                     .environment = environment,
                                     .inherited = inherited}});
  }
  if (!children_.empty()) thread_ = std::thread([this] { run(); });
}

RankProcesses::~RankProcesses() {
  is_ending_ = true;
  // Those that wait for anything else than their end. Other nodes' processes end by the first rank's word alone.
  bool is_first = true;
  {
    const MutexLock lock(mutex_);
    is_first = communicator_ == nullptr || communicator_->rank() == 0;
  }
  if (is_first) fail(absl::CancelledError("the first rank has ended"));
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<Communicator> RankProcesses::communicator(const std::shared_ptr<RankProcesses>& ranks) {
  if (ranks == nullptr) return nullptr;
  const MutexLock lock(ranks->mutex_);
  return {ranks, ranks->communicator_.get()};
}

Status RankProcesses::failure() const {
  const MutexLock lock(mutex_);
  return communicator_->failure().value_or(ok_status());
}

int64_t RankProcesses::step() const {
  const MutexLock lock(mutex_);
  return communicator_->step();
}

void RankProcesses::fail(const Status& why) {
  Communicator* communicator = nullptr;
  {
    const MutexLock lock(mutex_);
    if (communicator_ == nullptr && !early_failure_.has_value()) early_failure_ = why;
    communicator = communicator_.get();
  }
  if (communicator != nullptr) communicator->fail(why);
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
      fail(with_prefix(process.status(), str_cat("rank ", child.rank)));
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
    fail(absl::UnavailableError(str_cat("rank ", child.rank, " (pid ", child.process->pid(), ") ", end->text())));
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
