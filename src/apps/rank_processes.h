// The ranks of one model as processes (--tensor-parallel-size): this one is the first, the others are children of it,
// the same program (`transept rank`), over memory that they share. They live and die together.
//
//   ASSIGN_OR_RETURN(const std::shared_ptr<RankProcesses> ranks, RankProcesses::start(flags, config));   null: one rank
//   ASSIGN_OR_RETURN(LoadedModel model, load_engine(config, clock, RankProcesses::communicator(ranks)));
//
// Thread-safe after start(), but for the communicator, which the engine's thread has.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/child_process.h"
#include "apps/flags.h"
#include "comm/shared_communicator.h"
#include "comm/shared_group.h"
#include "startup/engine_config.h"

namespace transept {

class RankProcesses final {
 public:
  // Starts config.tensor_parallel_size - 1 processes, which load their parts now. Null: one rank. Errors: those of
  // check_rank_flags(); --epd beside them; no memory. A process that cannot be started, or ends, is the group's error.
  static StatusOr<std::shared_ptr<RankProcesses>> start(const Flags& flags, const EngineConfig& config);
  // Ends the others: those that are there after a second are killed.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Of the first rank, and keeps the processes; null if `ranks` is.
  static std::shared_ptr<Communicator> communicator(const std::shared_ptr<RankProcesses>& ranks);
  // What ended the group, which may be while no step runs; OK: nothing has.
  Status failure() const { return group_->failure().value_or(ok_status()); }

 private:
  struct Child {
    int rank = 0;
    ChildProcess::Command command;
    std::unique_ptr<ChildProcess> process = nullptr;
  };

  RankProcesses(std::unique_ptr<SharedGroup> group, const SharedCommunicator::Options& options,
                std::vector<Child> children);
  void run();
  bool start_all();
  bool look_after(Child& child);
  void wait_for_lines() const;

  const std::unique_ptr<SharedGroup> group_;
  SharedCommunicator communicator_;
  std::vector<Child> children_;  // of the thread
  std::atomic<bool> is_ending_{false};
  std::thread thread_;  // children die with the thread that started them
};

// argv of a rank's process, `transept` first: flags of the engine as they were given, but for how the model was found.
// Flags that came from the environment are left to it.
std::vector<std::string> rank_arguments(const Flags& flags, const EngineConfig& config, int rank, int64_t driver);

// Whether ranks may wait without sleeping: as many threads as processors, or fewer.
SharedCommunicator::Options rank_options(const EngineConfig& config);

// The verb that such a process runs, which no help names: an exit code.
int run_rank_process(const std::vector<std::string>& arguments);

}  // namespace transept
