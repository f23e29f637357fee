// For tests: an executor whose model is fake and everything around it real. The step's plan goes through InputBatch.
// KvStorage applies the moves and holds the "KV", one word per token and spec, in the slots that the metadata names.
// Rows go through select_row with its edits and choice. The scores of a row are a hash of what is read back through the
// block tables of all specs, which must agree. So a wrong table, a missing copy, a block used too early, an encoder
// that did not run or another sequence's row changes the answer. fake_scores() of the same tokens gives the scores to
// expect, from the request alone.
//
// With a spec of items it is a decode instance's: rows of kFakeRowBytes are taken from there, and nothing is encoded
// unless encode_too() allows it.
//
// With several steps in flight it does what the first stage of a pipeline does, where all is as late and as early as
// can be: a step's rows are computed at once, in submit(), and what its encodes write comes in collect().
//
// Compiled into the tests of this folder only (fake_model_executor_testlib.cc). Not thread-safe.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kv/block_space_manager.h"
#include "kv_storage/kv_storage.h"
#include "rank/executor.h"
#include "rank/input_batch.h"
#include "sampling/choose.h"
#include "tensor/arena.h"

namespace transept::testing {

inline constexpr int32_t kFakeVocabSize = 13;

// Raw scores of the token after `decoder` (prompt and answer so far), in [-4, 4).
std::vector<float> fake_scores(std::span<const int32_t> encoder, std::span<const int32_t> decoder);

// The encoder position to which the last of `decoder` attends. REQUIRES: an encoder input.
int32_t fake_source_index(std::span<const int32_t> encoder, std::span<const int32_t> decoder);

// The cross-attention of the row after `decoder`: head h attends with probability 3/4 to the position h past
// fake_source_index and with 1/4 to fake_source_index itself.
inline constexpr int32_t kFakeAlignmentHeads = 2;
std::vector<float> fake_cross_attention(int32_t head, int32_t source_index, int32_t num_positions);

// The rows of an input, as they are received: a word a position.
inline constexpr size_t kFakeRowBytes = sizeof(uint64_t);
inline constexpr int32_t kFakeWidth = kFakeRowBytes / sizeof(float);
std::vector<std::byte> fake_rows(std::span<const int32_t> encoder);

class FakeModelExecutor final : public Executor {
 public:
  // What a test may break, to show that the fault is noticed.
  enum class Fault {
    kNone,
    kLosesCopies,
    kLosesSwapIns,
    kSkipsEncodes,
    kForgetsCrossTable,
    kReadsOneSlotLess,
    kTakesNoRows,
    kGivesTheNextStep  // the samples of the step behind the one that is collected, if one is in flight
  };

  // Any number of specs of sequences and of groups, at least one of each, and at most one of items.
  explicit FakeModelExecutor(const BlockSpaceManager::Options& blocks, int32_t max_steps_in_flight = 1);

  const ExecutorInfo& info() const override { return info_; }
  Status submit(const StepPlan& plan) override;
  Status collect(uint64_t step, StepOutput& output) override;
  ExecutorStats stats() const override;
  StatusOr<std::vector<std::span<std::byte>>> row_places(std::span<const BlockId> blocks, int32_t num_positions,
                                                         int32_t width) override;

  void break_by(Fault fault) { fault_ = fault; }
  void encode_too() { info_.spec.part = ModelPart::kWhole; }

 private:
  struct InFlight {
    explicit InFlight(const InputBatch::Limits& limits) : batch(limits) {}

    const StepPlan* plan = nullptr;
    InputBatch batch;
    StepOutput output;  // with several steps in flight
  };

  bool has_several_steps() const { return info_.max_steps_in_flight > 1; }
  void begin(InFlight& step);
  void compute_rows(StepOutput& output);
  void apply_moves();
  void encode();
  void encode(const EncodeInputs& inputs);
  void write_encoded(const EncodeInputs& inputs, size_t row, uint64_t word);
  void encode_long(StepOutput& output);
  void write_rows();
  uint64_t read(int32_t seq, int32_t num_tokens) const;
  uint64_t read_word(TableOwner owner, int32_t seq, int32_t position) const;
  const AttentionMetadata& attention_of(TableOwner owner) const;
  void select_rows(SampleOutput& output);
  void capture_rows(std::vector<CapturedRows>& captured);
  void capture_row(const CapturePlan& plan, int32_t head, int32_t row, CapturedRows& rows);
  uint64_t& slot(size_t spec, int64_t index) const;

  ExecutorInfo info_;
  std::vector<std::unique_ptr<InFlight>> steps_;  // a ring; those in flight begin with the oldest
  size_t oldest_ = 0, num_in_flight_ = 0;
  InputBatch* batch_ = nullptr;   // this and submitted_: of the step in work
  EncodeInputs long_encode_;      // under way, unless empty
  int64_t num_long_encoded_ = 0;  // of its positions
  std::unique_ptr<KvStorage> kv_;
  ThreadPool threads_{1};
  Arena arena_{1 << 12};
  std::vector<Candidate> scratch_ = std::vector<Candidate>(kFakeVocabSize);
  const StepPlan* submitted_ = nullptr;
  Fault fault_ = Fault::kNone;
  int64_t num_encoder_runs_ = 0;
};

}  // namespace transept::testing
