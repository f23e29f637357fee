#include "rank/local_executor.h"

#include "base/check.h"

namespace transept {

Status LocalExecutor::submit(const StepPlan& plan) {
  CHECK(submitted_ == nullptr, "a step is in flight already");
  submitted_ = &plan;
  return ok_status();
}

Status LocalExecutor::collect(uint64_t step, StepOutput& output) {
  CHECK(submitted_ != nullptr && submitted_->step == step, "step ", step, " was not submitted");
  const StepPlan& plan = *submitted_;
  submitted_ = nullptr;
  return runner_->execute(plan, output);
}

}  // namespace transept
