// The ranks of one model as processes (--tensor-parallel-size): this one is the first of its host, the others of the
// host are children of it, the same program (`transept rank`). Those of one host share memory; those of several
// (--nnodes) meet at the first rank's port, and speak by Gloo. They live and die together.
//
//   ASSIGN_OR_RETURN(const std::shared_ptr<RankProcesses> ranks, RankProcesses::start(flags, config));   null: one rank
//   ASSIGN_OR_RETURN(LoadedModel model, load_engine(config, clock, RankProcesses::communicator(ranks)));
//
// Thread-safe after start(), but for the communicator, which the engine's thread has.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/child_process.h"
#include "apps/flags.h"
#include "base/mutex.h"
#include "comm/shared_communicator.h"
#include "comm/shared_group.h"
#include "startup/engine_config.h"

namespace transept {

class RankProcesses final {
 public:
  // Starts the host's other ranks, which load their parts now, and meets those of other hosts. Null: one rank. Errors:
  // those of check_rank_flags(); --epd beside them; no memory; those of meeting, on all ranks. A process that cannot be
  // started, or ends, is the group's error.
  static StatusOr<std::shared_ptr<RankProcesses>> start(const Flags& flags, const EngineConfig& config);
  // Ends the others: those of this host that are there after a second are killed.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Of this process's rank, and keeps the processes; null if `ranks` is.
  static std::shared_ptr<Communicator> communicator(const std::shared_ptr<RankProcesses>& ranks);
  // What ended the group, which may be while no step runs; OK: nothing has.
  Status failure() const;
  // The last that has begun; 0: there was none.
  int64_t step() const;

 private:
  struct Child {
    int rank = 0;
    ChildProcess::Command command;
    std::unique_ptr<ChildProcess> process = nullptr;
  };

  RankProcesses() = default;
  void start_children(const Flags& flags, const EngineConfig& config, int inherited);
  void run();
  bool start_all();
  bool look_after(Child& child);
  void wait_for_lines() const;
  void fail(const Status& why);

  std::unique_ptr<SharedGroup> group_;  // of one host
  std::vector<Child> children_;         // of the thread
  std::atomic<bool> is_ending_{false};
  std::thread thread_;  // children die with the thread that started them
  mutable Mutex mutex_;
  // Null: ranks of several hosts have not met yet.
  std::unique_ptr<Communicator> communicator_ ABSL_GUARDED_BY(mutex_);
  std::optional<Status> early_failure_ ABSL_GUARDED_BY(mutex_);  // before they met
};

// argv of a rank's process, `transept` first: flags of the engine as they were given, but for how the model was found.
// Flags that came from the environment are left to it.
std::vector<std::string> rank_arguments(const Flags& flags, const EngineConfig& config, int rank, int64_t driver);

// Meets the ranks of other hosts, as config.node_rank says. `check`: asked while others are missing; an error ends
// that.
StatusOr<std::unique_ptr<Communicator>> meet_other_nodes(const Flags& flags, const EngineConfig& config, int rank,
                                                         const std::function<Status()>& check);

// Whether ranks may wait without sleeping: as many threads as processors, or fewer.
SharedCommunicator::Options rank_options(const EngineConfig& config);

// The verb that such a process runs, which no help names: an exit code.
int run_rank_process(const std::vector<std::string>& arguments);

// Of a process of another node than the first (--node-rank): works for the first rank in place of the verb, without
// inputs, a port or answers; returns its exit code. nullopt: this is no such process.
std::optional<int> run_other_node(std::string_view verb, const Flags& flags);

}  // namespace transept
