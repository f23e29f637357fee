// The encode that runs for a share of several steps (LongEncode of a plan): keeps its inputs, and where it stands.
// Owned by the model runner; not thread-safe.
#pragma once

#include <functional>

#include "base/sliced_call.h"
#include "engine/encode_inputs.h"

namespace transept {

class LongEncodeRun final {
 public:
  // `encode` computes what the inputs say, and writes their cross KV; in slices, so between two tasks of the pool other
  // steps may run. Borrows the pool.
  LongEncodeRun(ThreadPool& threads, const EncodeInputs::Limits& limits,
                std::function<void(const EncodeInputs&)> encode)
      : inputs_(limits), call_(threads), encode_(std::move(encode)) {}

  // Drops what the plan does not go on with. Before the plan's block moves: until then no other group has the blocks
  // that the dropped encode may still write to (a dropped call leaves out tasks of the pool, and nothing else).
  void drop_unless_wanted(const LongEncode& plan) {
    if (!plan.runs || plan.begins) call_.drop();
  }

  // Begins the plan's long encode or goes on with it, for so long and hardly longer. True: it has ended, and inputs()
  // are its. REQUIRES: drop_unless_wanted(plan); one that goes on is the one that is under way.
  bool run(const LongEncode& plan, double seconds);

  const EncodeInputs& inputs() const { return inputs_; }

 private:
  EncodeInputs inputs_;  // before call_, which may have to end first
  SlicedCall call_;
  GroupId group_id_;
  std::function<void(const EncodeInputs&)> encode_;
};

}  // namespace transept
