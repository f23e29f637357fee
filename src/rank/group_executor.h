// Runs each step on all ranks that hold a model together: the first is the engine's, the others run run_rank(), as
// threads or other processes. A group fails as one: what ends a rank is the error of every step from then on.
//
// submit() hands the plan to all ranks and runs the first rank's part of it up to the rows that the last stage of a
// pipeline gives back; collect() takes these and chooses. So all stages work at the same time, each on a step of its
// own.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/communicator.h"
#include "rank/executor.h"
#include "rank/model_runner.h"

namespace transept {

// The first rank's. Owned by the engine and used by its thread. Not thread-safe.
class GroupExecutor final : public Executor {
 public:
  // `ranks` lives as long as the group: its owner may wait for the others' ends in its destructor. REQUIRES: the runner
  // is rank 0 of `ranks`, and the other ranks have called run_rank().
  GroupExecutor(std::unique_ptr<EncoderDecoderModelRunner> runner, std::shared_ptr<Communicator> ranks);
  // Tells the others to end. REQUIRES: no step is in flight.
  ~GroupExecutor() override;
  GroupExecutor(const GroupExecutor&) = delete;
  GroupExecutor& operator=(const GroupExecutor&) = delete;

  const ExecutorInfo& info() const override { return runner_->info(); }
  void enter_thread() override { runner_->pin_caller(); }
  Status submit(const StepPlan& plan) override;
  Status collect(uint64_t step, StepOutput& output) override;
  ExecutorStats stats() const override;

 private:
  struct Submitted {
    const StepPlan* plan = nullptr;
    StepOutput output;
  };

  Status send(const StepPlan& plan, bool is_alone);
  Status begin(const StepPlan& plan);
  Status end_next();

  std::shared_ptr<Communicator> ranks_;  // outlives the runner
  std::unique_ptr<EncoderDecoderModelRunner> runner_;
  std::vector<Submitted> steps_;  // a ring; those in flight begin with the oldest
  size_t oldest_ = 0, num_in_flight_ = 0;
  size_t num_ended_ = 0;  // of those in flight, the first: their outputs are there
  std::vector<std::byte> bytes_;
};

// What the other ranks do: executes the plans of rank 0 until that ends the group. Ends the group with its own errors,
// which name the rank. Errors: a plan that cannot be read or does not fit; those of the group. REQUIRES: the runner is
// one of `ranks`, and not the first.
Status run_rank(EncoderDecoderModelRunner& runner, Communicator& ranks);

}  // namespace transept
