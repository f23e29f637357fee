// For tests of the engine's bookkeeping: an executor without a model. The token of a row is a function of its seed,
// sequence index and position, so the request alone determines the text.
#pragma once

#include "rank/executor.h"

namespace transept::testing {

class FakeExecutor final : public Executor {
 public:
  FakeExecutor() {
    info_.spec.vocab_size = kVocabSize;
    info_.spec.kv = {{KvKind::kSelf}, {KvKind::kCross}};
    info_.tables = {{TableOwner::kSequence}, {TableOwner::kGroup}};
  }

  static constexpr int32_t kVocabSize = 50;

  static int32_t token(uint64_t seed, int32_t index, uint32_t position) {
    return static_cast<int32_t>((seed * 31 + static_cast<uint64_t>(index) * 7 + position * 3) % kVocabSize);
  }

  const ExecutorInfo& info() const override { return info_; }

  Status submit(const StepPlan& plan) override {
    plan_ = &plan;
    return fail_next_ ? absl::InternalError("the device is gone") : ok_status();
  }

  Status collect(uint64_t step, StepOutput& output) override {
    CHECK(plan_ != nullptr && plan_->step == step);
    output.step = step;
    output.samples.top.clear();
    output.samples.rows.assign(plan_->rows.size(), RowSample{});
    for (size_t i = 0; i < plan_->rows.size(); ++i) {
      const RowPlan& row = plan_->rows[i];
      RowSample& sample = output.samples.rows[i];
      sample.logprob = row.target_token >= 0 ? -1.0f : -0.5f;
      sample.rank = 1;
      sample.token_id = row.target_token >= 0 ? row.target_token : token(row.seed, row.sample_idx, row.position);
      if (gives_no_numbers_) sample.token_id = -1;
    }
    return ok_status();
  }

  ExecutorStats stats() const override { return {}; }

  void fail_next() { fail_next_ = true; }
  void give_no_numbers() { gives_no_numbers_ = true; }

 private:
  ExecutorInfo info_;
  const StepPlan* plan_ = nullptr;
  bool fail_next_ = false;
  bool gives_no_numbers_ = false;
};

}  // namespace transept::testing
