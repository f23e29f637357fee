// The executor of an engine in this process. Owned by the engine and used by its thread. Not thread-safe.
#pragma once

#include <memory>

#include "rank/executor.h"
#include "rank/model_runner.h"

namespace transept {

// One rank, in this process (vLLM's UniProcExecutor): collect runs the step.
class LocalExecutor final : public Executor {
 public:
  explicit LocalExecutor(std::unique_ptr<EncoderDecoderModelRunner> runner) : runner_(std::move(runner)) {}

  const ExecutorInfo& info() const override { return runner_->info(); }
  void enter_thread() override { runner_->pin_caller(); }
  Status submit(const StepPlan& plan) override;
  Status collect(uint64_t step, StepOutput& output) override;
  ExecutorStats stats() const override { return runner_->stats(); }
  StatusOr<std::vector<std::span<std::byte>>> row_places(std::span<const BlockId> blocks, int32_t num_positions,
                                                         int32_t width) override {
    return runner_->row_places(blocks, num_positions, width);
  }

  const EncoderDecoderModelRunner& runner() const { return *runner_; }  // for tests

 private:
  std::unique_ptr<EncoderDecoderModelRunner> runner_;
  const StepPlan* submitted_ = nullptr;
};

}  // namespace transept
