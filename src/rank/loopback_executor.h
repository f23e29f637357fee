// An executor whose plans go through bytes, as to a rank in another process (--debug-loopback-plans): what the engine
// submits is encoded, decoded, checked, and only the decoded plan is executed. Proves that plans are values.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "rank/check_plan.h"
#include "rank/executor.h"
#include "rank/plan_codec.h"

namespace transept {

class LoopbackExecutor final : public Executor {
 public:
  explicit LoopbackExecutor(std::unique_ptr<Executor> executor)
      : executor_(std::move(executor)), plans_(static_cast<size_t>(executor_->info().max_steps_in_flight)) {}

  const ExecutorInfo& info() const override { return executor_->info(); }
  void enter_thread() override { executor_->enter_thread(); }
  Status submit(const StepPlan& plan) override {
    StepPlan& decoded = plans_[num_plans_++ % plans_.size()];
    encode_plan(plan, bytes_);
    RETURN_IF_ERROR(decode_plan(bytes_, decoded));
    RETURN_IF_ERROR(check_plan(decoded, info()));
    return executor_->submit(decoded);
  }
  Status collect(uint64_t step, StepOutput& output) override { return executor_->collect(step, output); }
  ExecutorStats stats() const override { return executor_->stats(); }
  StatusOr<std::vector<std::span<std::byte>>> row_places(std::span<const BlockId> blocks, int32_t num_positions,
                                                         int32_t width) override {
    return executor_->row_places(blocks, num_positions, width);
  }

 private:
  std::unique_ptr<Executor> executor_;
  std::vector<std::byte> bytes_;
  std::vector<StepPlan> plans_;  // a ring, of as many as may be in flight
  size_t num_plans_ = 0;
};

}  // namespace transept
