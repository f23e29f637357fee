// The encode that runs in slices of several steps (LongEncode of a plan): keeps its inputs and its progress. Owned by
// the model runner. Not thread-safe.
#pragma once

#include <functional>

#include "base/sliced_call.h"
#include "rank/encode_inputs.h"

namespace transept {

class LongEncodeRun final {
 public:
  // `encode` computes its inputs and writes their cross KV. It runs in slices, so other steps may run between two of
  // its tasks. Borrows the pool.
  LongEncodeRun(ThreadPool& threads, const EncodeInputs::Limits& limits,
                std::function<void(const EncodeInputs&)> encode)
      : inputs_(limits), call_(threads), encode_(std::move(encode)) {}

  // Drops the encode that the plan does not continue. Call before the plan's block moves: until then the blocks that
  // the dropped encode may still write to are not reused (a dropped call skips tasks of the pool, and nothing else).
  void drop_unless_wanted(const LongEncode& plan) {
    if (!plan.runs || plan.begins) call_.drop();
  }

  // Begins the plan's long encode, whose media are in `bulk`, or continues it, for `num_tasks` tasks of the pool, or to
  // its end if plan.to_the_end. Returns true if it has ended; inputs() are then its inputs. REQUIRES: num_tasks > 0;
  // drop_unless_wanted(plan) was called; an encode that is continued is the one under way.
  bool run(const LongEncode& plan, std::span<const float> bulk, int64_t num_tasks);

  const EncodeInputs& inputs() const { return inputs_; }

 private:
  std::vector<float> values_;  // the media's, which outlive the plan
  EncodeInputs inputs_;        // before call_, which may have to end first
  SlicedCall call_;
  GroupId group_id_;
  int32_t item_ = 0;
  std::function<void(const EncodeInputs&)> encode_;
};

}  // namespace transept
