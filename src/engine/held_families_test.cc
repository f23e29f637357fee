// Requests over handles to every checkpoint: the answers are those of requests that bring their inputs, to the bit, and
// what a handle keeps is encoded once.
#include <gtest/gtest.h>

#include <string>

#include "engine/engine_testing.h"
#include "engine/family_requests_testing.h"

namespace transept {
namespace {

using testing::Answers;
using testing::Circumstances;

class HeldFamilies : public testing::FamilyRequests {
 protected:
  // One handle for each content: of six requests, the last two have those of the first.
  Status add(LLMEngine& engine, const std::string& id, EncoderDecoderInputs inputs,
             const SamplingParams& params) override {
    if (!holds_) return FamilyRequests::add(engine, id, std::move(inputs), params);
    EncoderDecoderInputs encoder, decoder = inputs;
    encoder.items = std::move(inputs.items);
    for (size_t i = 0; i < encoder.items.size(); ++i) {
      decoder.items[i] = EncoderItem();
      decoder.items[i].splice_offset = std::exchange(encoder.items[i].splice_offset, 0);
    }
    EncodedInput& handle = handles_[item_digest(encoder.items.front()).bytes];
    if (!handle.has_value()) {
      ASSIGN_OR_RETURN(handle, engine.encode(encoder));
    }
    return engine.add_request(id, handle, std::move(decoder), params);
  }
  void before_step() override {
    if (drops_) handles_.clear();
  }
  void release(LLMEngine& engine) {
    handles_.clear();
    engine.collect_dropped_inputs();
  }

  // Rows are captured by the request that encodes, which is another one over handles.
  Answers answers_of(LLMEngine& engine, bool holds) {
    holds_ = holds;
    Answers answers = run(engine);
    for (auto& [id, answer] : answers) answer.encoder.clear();
    return answers;
  }

  bool holds_ = false, drops_ = false;
  std::map<std::array<std::byte, 32>, EncodedInput> handles_;
};

TEST_P(HeldFamilies, AnswersAreThoseOfRequestsWithTheirOwnInputs) {
  const Circumstances setups[] = {
      {.name = "cpu"},
      {.name = "reference", .backend = "reference"},
      {.name = "int8", .weights = kInt8Format, .kv = DType::kInt8},
      {.name = "blocks of one token", .block_size = 1},
      {.name = "parts", .block_size = 16, .max_num_batched_tokens = 9},
  };
  for (const Circumstances& setup : setups) {
    if (is_long_for(setup)) continue;
    SCOPED_TRACE(setup.name);
    const std::unique_ptr<LLMEngine> plain = make_engine(setup), holding = make_engine(setup);
    const Answers expected = answers_of(*plain, false);
    EXPECT_EQ(answers_of(*holding, true), expected);
    EXPECT_EQ(handles_.size(), 4u);
    EXPECT_GT(holding->scheduler().blocks().device_usage().pinned, 0) << "after the last request";
    const int64_t num_runs = holding->executor_stats().num_encoder_runs;
    EXPECT_EQ(answers_of(*holding, true), expected);
    EXPECT_EQ(holding->executor_stats().num_encoder_runs, num_runs) << "nothing is encoded twice";
    EXPECT_EQ(holding->stats().num_reencodes, 0);
    release(*holding);
    testing::expect_nothing_left(*holding);
  }
}

// Several requests preempt each other, and what handles keep is given up meanwhile.
TEST_P(HeldFamilies, AnswersAreTheSameInAPoolOfOneRequest) {
  for (const PreemptionMode mode : {PreemptionMode::kRecompute, PreemptionMode::kSwap}) {
    for (const bool drops : {false, true}) {
      SCOPED_TRACE(str_cat(mode == PreemptionMode::kSwap ? "swap" : "recompute", drops ? ", dropped in flight" : ""));
      Circumstances setup{.name = "tight"};
      testing::make_tight(make_engine(setup)->executor().info(), setup);
      setup.preemption = mode;
      const std::unique_ptr<LLMEngine> plain = make_engine(setup), holding = make_engine(setup);
      const Answers expected = answers_of(*plain, false);
      drops_ = drops;
      EXPECT_EQ(answers_of(*holding, true), expected);
      drops_ = false;
      release(*holding);
      testing::expect_nothing_left(*holding);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, HeldFamilies, ::testing::ValuesIn(testing::in_turn(testing::folders(), 0)),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
