#include "rank/group_executor.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "rank/check_plan.h"
#include "rank/plan_codec.h"

namespace transept {
namespace {

// Goes before a plan to each rank, which waits for it without a time limit. No bytes: the group ends.
struct Announcement {
  uint64_t step = 0;
  uint64_t num_bytes = 0;
};

Status announce(Communicator& ranks, const Announcement& next) {
  for (int rank = 1; rank < ranks.size(); ++rank) {
    RETURN_IF_ERROR(ranks.send(rank, std::as_bytes(std::span(&next, 1))));
  }
  return ok_status();
}

Status execute_plans(EncoderDecoderModelRunner& runner, Communicator& ranks) {
  std::vector<std::byte> bytes;
  StepPlan plan;
  StepOutput output;
  while (true) {
    Announcement next;
    RETURN_IF_ERROR(ranks.await(0));
    RETURN_IF_ERROR(ranks.recv(0, std::as_writable_bytes(std::span(&next, 1))));
    if (next.num_bytes == 0) return ok_status();
    bytes.resize(next.num_bytes);
    ranks.begin_step(static_cast<int64_t>(next.step));
    RETURN_IF_ERROR(ranks.broadcast(bytes, 0));
    RETURN_IF_ERROR(decode_plan(bytes, plan));
    RETURN_IF_ERROR(check_plan(plan, runner.info()));
    RETURN_IF_ERROR(runner.execute(plan, output));
  }
}

}  // namespace

GroupExecutor::~GroupExecutor() { announce(*ranks_, {}).IgnoreError(); }

Status GroupExecutor::send(const StepPlan& plan) {
  encode_plan(plan, bytes_);
  RETURN_IF_ERROR(announce(*ranks_, {plan.step, bytes_.size()}));
  ranks_->begin_step(static_cast<int64_t>(plan.step));
  return ranks_->broadcast(bytes_, 0);
}

Status GroupExecutor::submit(const StepPlan& plan) {
  CHECK(submitted_ == nullptr, "a step is in flight already");
  if (const Status sent = send(plan); !sent.ok()) return with_prefix(sent, str_cat("step ", plan.step));
  submitted_ = &plan;
  return ok_status();
}

Status GroupExecutor::collect(uint64_t step, StepOutput& output) {
  CHECK(submitted_ != nullptr && submitted_->step == step, "step ", step, " was not submitted");
  const StepPlan& plan = *submitted_;
  submitted_ = nullptr;
  const Status executed = runner_->execute(plan, output);
  return executed.ok() ? executed : with_prefix(executed, str_cat("step ", step));
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
  const Status ended = execute_plans(runner, ranks);
  if (!ended.ok()) ranks.fail(with_prefix(ended, str_cat("rank ", ranks.rank())));
  return ended;
}

}  // namespace transept
