#include "rank/group_executor.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "rank/check_plan.h"
#include "rank/plan_codec.h"

namespace transept {
namespace {

// Goes before a plan to each rank, which waits for it without a time limit.
enum class Kind : uint64_t {
  kPlan,       // `num_bytes` of a plan follow
  kEndOfStep,  // of the oldest that has begun; to ranks that have something to do then
  kEndOfGroup,
};
struct Announcement {
  Kind kind = Kind::kPlan;
  uint64_t step = 0;
  uint64_t num_bytes = 0;
  uint64_t is_alone = 0;  // no other step is in flight
};

Status announce(Communicator& ranks, int end, const Announcement& next) {
  for (int rank = 1; rank < end; ++rank) RETURN_IF_ERROR(ranks.send(rank, std::as_bytes(std::span(&next, 1))));
  return ok_status();
}

Status execute_plans(EncoderDecoderModelRunner& runner, Communicator& ranks) {
  std::vector<std::byte> bytes;
  std::vector<StepPlan> plans(static_cast<size_t>(runner.info().max_steps_in_flight));  // a ring
  size_t num_plans = 0;
  StepOutput output;  // of no use here
  const bool is_told_of_ends = ranks.rank() < runner.num_ranks_told_of_ends();
  while (true) {
    Announcement next;
    RETURN_IF_ERROR(ranks.await(0));
    RETURN_IF_ERROR(ranks.recv(0, std::as_writable_bytes(std::span(&next, 1))));
    if (next.kind == Kind::kEndOfGroup) return ok_status();
    if (next.kind == Kind::kEndOfStep) {
      RETURN_IF_ERROR(runner.end_step());
      continue;
    }
    bytes.resize(next.num_bytes);
    ranks.begin_step(static_cast<int64_t>(next.step));
    RETURN_IF_ERROR(runner.is_stage() ? ranks.recv(0, bytes) : ranks.broadcast(bytes, 0));
    StepPlan& plan = plans[num_plans++ % plans.size()];
    RETURN_IF_ERROR(decode_plan(bytes, plan));
    RETURN_IF_ERROR(check_plan(plan, runner.info()));
    RETURN_IF_ERROR(runner.begin_step(plan, output, next.is_alone != 0));
    if (!is_told_of_ends) RETURN_IF_ERROR(runner.end_step());
  }
}

Status with_step(const Status& status, uint64_t step) {
  return status.ok() ? status : with_prefix(status, str_cat("step ", step));
}

}  // namespace

GroupExecutor::GroupExecutor(std::unique_ptr<EncoderDecoderModelRunner> runner, std::shared_ptr<Communicator> ranks)
    : ranks_(std::move(ranks)),
      runner_(std::move(runner)),
      steps_(static_cast<size_t>(runner_->info().max_steps_in_flight)) {}

GroupExecutor::~GroupExecutor() {
  CHECK(num_in_flight_ == 0, "steps are in flight");
  announce(*ranks_, ranks_->size(), {.kind = Kind::kEndOfGroup}).IgnoreError();
}

// Stages are busy with earlier steps: each gets a message, which it reads when it comes to it.
Status GroupExecutor::send(const StepPlan& plan, bool is_alone) {
  runner_->make_way();
  encode_plan(plan, bytes_);
  const Announcement next{Kind::kPlan, plan.step, bytes_.size(), is_alone};
  if (!runner_->is_stage()) {
    RETURN_IF_ERROR(announce(*ranks_, ranks_->size(), next));
    ranks_->begin_step(static_cast<int64_t>(plan.step));
    return ranks_->broadcast(bytes_, 0);
  }
  ranks_->begin_step(static_cast<int64_t>(plan.step));
  for (int rank = 1; rank < ranks_->size(); ++rank) {
    RETURN_IF_ERROR(ranks_->send(rank, std::as_bytes(std::span(&next, 1))));
    RETURN_IF_ERROR(ranks_->send(rank, bytes_));
  }
  return ok_status();
}

Status GroupExecutor::submit(const StepPlan& plan) {
  CHECK(num_in_flight_ < steps_.size(), "a step more than may be in flight");
  const Status begun = begin(plan);
  if (!begun.ok()) num_in_flight_ = num_ended_ = 0;
  return with_step(begun, plan.step);
}

Status GroupExecutor::begin(const StepPlan& plan) {
  while (runner_->must_end()) RETURN_IF_ERROR(end_next());
  const bool is_alone = num_in_flight_ == 0;
  RETURN_IF_ERROR(send(plan, is_alone));
  Submitted& step = steps_[(oldest_ + num_in_flight_) % steps_.size()];
  step.plan = &plan;
  RETURN_IF_ERROR(runner_->begin_step(plan, step.output, is_alone));
  ++num_in_flight_;
  return ok_status();
}

// The oldest that has begun and not ended, on all ranks.
Status GroupExecutor::end_next() {
  runner_->make_way();
  RETURN_IF_ERROR(announce(*ranks_, runner_->num_ranks_told_of_ends(), {.kind = Kind::kEndOfStep}));
  RETURN_IF_ERROR(runner_->end_step());
  ++num_ended_;
  return ok_status();
}

Status GroupExecutor::collect(uint64_t step, StepOutput& output) {
  Submitted& oldest = steps_[oldest_];
  CHECK(num_in_flight_ > 0 && oldest.plan->step == step, "step ", step, " was not submitted");
  if (const Status ended = num_ended_ > 0 ? ok_status() : end_next(); !ended.ok()) {
    num_in_flight_ = num_ended_ = 0;
    return with_step(ended, step);
  }
  std::swap(output, oldest.output);
  oldest_ = (oldest_ + 1) % steps_.size();
  --num_in_flight_;
  --num_ended_;
  return ok_status();
}

ExecutorStats GroupExecutor::stats() const {
  ExecutorStats stats = runner_->stats();
  const Communicator::Times times = ranks_->times();
  stats.num_ranks = ranks_->size();
  stats.ranks_are_up = !ranks_->failure().has_value();
  stats.collective_seconds = times.calls;
  CHECK(ranks_->size() <= std::ssize(stats.rank_wait_seconds));
  std::copy_n(times.waits.begin(), ranks_->size(), stats.rank_wait_seconds.begin());
  return stats;
}

Status run_rank(EncoderDecoderModelRunner& runner, Communicator& ranks) {
  Status ended = execute_plans(runner, ranks);
  if (!ended.ok()) ranks.fail(with_prefix(ended, str_cat("rank ", ranks.rank())));
  return ended;
}

}  // namespace transept
