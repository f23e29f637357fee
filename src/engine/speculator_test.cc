// Who gets drafts, and where they end. FakeExecutor's answers are known, so every draft is right unless a test says
// otherwise.
#include "engine/speculator.h"

#include <gtest/gtest.h>

#include "engine/engine_testing.h"
#include "engine/llm_engine.h"
#include "rank/fake_executor_testing.h"

namespace transept {
namespace {

using testing::FakeExecutor;
using testing::foretold;

class SpeculatorTest : public ::testing::Test {
 protected:
  static LLMEngine::Options options(int32_t most) {
    LLMEngine::Options options = testing::small_engine_options();
    options.speculation.num_speculative_tokens = most;
    options.speculation.is_adaptive = false;
    return options;
  }

  // Twelve tokens, all of them drafted.
  static SamplingParams params(uint64_t seed = 3) {
    SamplingParams params;
    params.max_tokens = 12;
    params.seed = seed;
    params.draft_token_ids = foretold(seed, 12);
    return params;
  }

  RequestOutput run(const SamplingParams& params, const LLMEngine::Options& with) {
    LLMEngine engine(with, std::make_unique<FakeExecutor>(), nullptr, clock_);
    EncoderDecoderInputs inputs;
    inputs.set_encoder_ids({3, 4, 5});
    inputs.prompt_token_ids = {2};
    EXPECT_TRUE(engine.add_request("r", inputs, params).ok());
    std::vector<RequestOutput> outputs;
    while (engine.has_unfinished_requests()) EXPECT_TRUE(engine.step(outputs).ok());
    EXPECT_EQ(outputs.size(), 1u);
    testing::expect_nothing_left(engine);
    stats_ = engine.stats();
    return std::move(outputs.at(0));
  }

  FakeClock clock_;
  EngineStats stats_;
};

TEST_F(SpeculatorTest, RightDraftsSaveTheirSteps) {
  const RequestOutput output = run(params(), options(4));
  EXPECT_EQ(output.outputs[0].token_ids, foretold(3, 12));
  // The prompt's step, two of five tokens, and one of the last.
  EXPECT_EQ(stats_.num_steps, 4);
  EXPECT_EQ(stats_.num_generated_tokens, 12);
  EXPECT_EQ(stats_.drafts.num_drafts, 2);
  EXPECT_EQ(stats_.drafts.num_draft_tokens, 8);
  EXPECT_EQ(stats_.drafts.num_accepted_tokens, 8);
  EXPECT_EQ(stats_.drafts.num_accepted_at[0], 2);
  EXPECT_EQ(stats_.drafts.num_accepted_at[3], 2);
  EXPECT_EQ(stats_.drafts.num_accepted_at[4], 0);
  EXPECT_EQ(output.num_accepted_drafts, 8);
  EXPECT_EQ(output.num_rejected_drafts, 0);
}

TEST_F(SpeculatorTest, WrongDraftsCostRowsAlone) {
  SamplingParams wrong = params();
  for (int32_t& token : wrong.draft_token_ids) token = (token + 1) % FakeExecutor::kVocabSize;
  const RequestOutput output = run(wrong, options(4));
  EXPECT_EQ(output.outputs[0].token_ids, foretold(3, 12));
  EXPECT_EQ(stats_.num_steps, 12);
  EXPECT_EQ(stats_.num_generated_tokens, 12);
  EXPECT_EQ(output.num_accepted_drafts, 0);
  EXPECT_EQ(output.num_rejected_drafts, stats_.drafts.num_draft_tokens);
  EXPECT_GT(stats_.drafts.num_draft_tokens, 4);
}

// Their rows could not be kept, or nothing would follow them.
TEST_F(SpeculatorTest, ADraftEndsBeforeWhatCannotFollow) {
  const std::vector<int32_t> answer = foretold(3, 12);
  // FakeExecutor knows no edits: it chooses the banned token all the same, once it is not drafted.
  SamplingParams banned = params();
  banned.bad_words_ids = {{answer[2], answer[3]}};
  run(banned, options(9));
  EXPECT_EQ(stats_.num_steps, 3) << "the prompt's token; two drafts, and what was banned; seven drafts, and the last";
  EXPECT_EQ(stats_.drafts.num_draft_tokens, 2 + 7);
  EXPECT_EQ(stats_.drafts.num_accepted_tokens, 2 + 7);

  SamplingParams ends = params();
  ends.eos_token_ids = {answer[3]};
  EXPECT_EQ(run(ends, options(9)).outputs[0].token_ids.size(), 4u);
  EXPECT_EQ(stats_.num_steps, 2) << "two drafts, and the end";
  EXPECT_EQ(stats_.drafts.num_draft_tokens, 2);

  SamplingParams negative = params();
  negative.draft_token_ids[3] = -1;
  run(negative, options(2));
  EXPECT_EQ(stats_.num_generated_tokens, 12);
}

TEST_F(SpeculatorTest, ScoresAndSingleTokensHaveNone) {
  SamplingParams one = params(), score = params();
  one.max_tokens = 1;
  score.score_only = true;
  score.max_tokens = 1;
  for (const SamplingParams& without : {one, score}) {
    run(without, options(4));
    EXPECT_EQ(stats_.drafts.num_drafts, 0);
  }
  run(params(), options(0));
  EXPECT_EQ(stats_.drafts.num_drafts, 0) << "--num-speculative-tokens 0";
}

// A step's rows are first those of all sequences.
TEST_F(SpeculatorTest, DraftsTakeWhatTheBudgetLeaves) {
  LLMEngine::Options tight = options(9);
  tight.scheduler.max_num_seqs = 4;
  tight.scheduler.max_num_batched_tokens = 4;
  SamplingParams four = params();
  four.n = 4;
  four.temperature = 1;
  EXPECT_EQ(run(four, tight).outputs.size(), 4u);
  EXPECT_EQ(stats_.drafts.num_drafts, 0) << "four rows of four sequences";
  four.n = 3;
  run(four, tight);
  EXPECT_GT(stats_.drafts.num_drafts, 0);
  EXPECT_EQ(stats_.drafts.num_draft_tokens, stats_.drafts.num_drafts) << "one row is left";
}

}  // namespace
}  // namespace transept
