// Proves the engine's bookkeeping with an executor that has no model: what is asked is answered, whole, and nothing
// stays.
#include "engine/llm_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/engine_testing.h"

namespace transept {
namespace {

using testing::FakeExecutor;
using testing::foretold;

class LLMEngineTest : public ::testing::Test {
 protected:
  LLMEngineTest() { rebuild(64); }

  void rebuild(int32_t num_blocks) {
    LLMEngine::Options options = testing::small_engine_options(num_blocks);
    options.max_trace_steps = 1000;
    auto executor = std::make_unique<FakeExecutor>();
    executor_ = executor.get();
    engine_ = std::make_unique<LLMEngine>(options, std::move(executor), nullptr, clock_);
  }

  static EncoderDecoderInputs inputs(int32_t num_encoder = 5, int32_t num_decoder = 2) {
    EncoderDecoderInputs inputs;
    inputs.set_encoder_ids(std::vector<int32_t>(static_cast<size_t>(static_cast<size_t>(num_encoder)), 3));
    inputs.prompt_token_ids.assign(static_cast<size_t>(num_decoder), 2);
    return inputs;
  }

  static SamplingParams params(int32_t max_tokens, uint64_t seed) {
    SamplingParams params;
    params.max_tokens = max_tokens;
    params.seed = seed;
    return params;
  }

  std::map<std::string, RequestOutput> run() {
    std::map<std::string, RequestOutput> results;
    std::vector<RequestOutput> finished;
    for (int step = 0; step < 1000 && engine_->has_unfinished_requests(); ++step) {
      finished.clear();
      EXPECT_TRUE(engine_->step(finished).ok());
      for (RequestOutput& output : finished) results.emplace(output.request_id, output);
    }
    EXPECT_FALSE(engine_->has_unfinished_requests());
    testing::expect_nothing_left(*engine_);
    return results;
  }

  FakeClock clock_;
  FakeExecutor* executor_ = nullptr;
  std::unique_ptr<LLMEngine> engine_;
};

TEST_F(LLMEngineTest, AnswersWithPromptsTokensAndSums) {
  ASSERT_TRUE(engine_->add_request("a", inputs(), params(4, 9)).ok());
  const RequestOutput output = run().at("a");
  EXPECT_EQ(output.encoder_prompt_token_ids.size(), 5u);
  EXPECT_EQ(output.prompt_token_ids, (std::vector<int32_t>{2, 2}));
  ASSERT_EQ(output.outputs.size(), 1u);
  EXPECT_EQ(output.outputs[0].token_ids, foretold(9, 4));
  EXPECT_EQ(output.outputs[0].finish_reason, FinishReason::kLength);
  EXPECT_DOUBLE_EQ(output.outputs[0].cumulative_logprob, -2.0);
  EXPECT_FALSE(output.outputs[0].logprobs.has_value());
}

TEST_F(LLMEngineTest, NSamplesForkAfterThePromptAndComeBackInOrder) {
  SamplingParams sampled = params(3, 5);
  sampled.n = 4;
  sampled.temperature = 1;
  ASSERT_TRUE(engine_->add_request("n", inputs(), sampled).ok());
  const RequestOutput output = run().at("n");
  ASSERT_EQ(output.outputs.size(), 4u);
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(output.outputs[static_cast<size_t>(i)].index, i);
    EXPECT_EQ(output.outputs[static_cast<size_t>(i)].token_ids, foretold(5, 3, i));
  }
}

TEST_F(LLMEngineTest, SamplesOfOneGroupEndEachAtTheirOwnTime) {
  SamplingParams sampled = params(8, 5);
  sampled.n = 3;
  sampled.temperature = 1;
  sampled.eos_token_ids = {foretold(5, 3, 1)[2]};  // the second sample's third token
  ASSERT_TRUE(engine_->add_request("n", inputs(), sampled).ok());
  const RequestOutput output = run().at("n");
  EXPECT_EQ(output.outputs[1].token_ids, foretold(5, 3, 1));
  EXPECT_EQ(output.outputs[1].finish_reason, FinishReason::kStop);
}

TEST_F(LLMEngineTest, ALateShortRequestEndsBeforeAnEarlyLongOne) {
  ASSERT_TRUE(engine_->add_request("long", inputs(), params(30, 1)).ok());
  std::vector<RequestOutput> finished;
  ASSERT_TRUE(engine_->step(finished).ok());
  ASSERT_TRUE(engine_->add_request("short", inputs(), params(2, 2)).ok());
  while (finished.empty()) ASSERT_TRUE(engine_->step(finished).ok());
  EXPECT_EQ(finished[0].request_id, "short");
  run();
  // The trace shows that both were in one step.
  bool shared = false;
  for (const StepTrace::Step& step : engine_->trace().steps()) shared |= step.num_seqs == 2;
  EXPECT_TRUE(shared);
}

TEST_F(LLMEngineTest, ScoresThePromptAndGeneratesNothing) {
  SamplingParams score = params(1, 0);
  score.score_only = true;
  score.prompt_logprobs = 0;
  ASSERT_TRUE(engine_->add_request("s", inputs(5, 4), score).ok());
  const RequestOutput output = run().at("s");
  EXPECT_TRUE(output.outputs.empty());
  ASSERT_TRUE(output.prompt_logprobs.has_value());
  ASSERT_EQ(output.prompt_logprobs->size(), 4u);
  EXPECT_FALSE(output.prompt_logprobs->front().has_value());
  EXPECT_EQ((*output.prompt_logprobs)[1]->at(0).token_id, 2);
  EXPECT_DOUBLE_EQ(*output.score, -3.0);
}

TEST_F(LLMEngineTest, TinyPoolsGiveTheSameTexts) {
  for (const int32_t num_blocks : {8, 64}) {
    rebuild(num_blocks);
    for (int i = 0; i < 6; ++i) {
      SamplingParams sampled = params(12, static_cast<uint64_t>(i));
      sampled.n = 1 + i % 2;
      sampled.temperature = 1;
      const EncoderDecoderInputs prompt = inputs(2 + i % 3, 1);
      // 1 cross + at most 2 x ceil(13 / 4) blocks: more than half of the small pool.
      const Status added = engine_->add_request(str_cat(i), prompt, sampled);
      if (num_blocks == 8 && i % 2 == 1) {
        EXPECT_FALSE(added.ok()) << "9 blocks never fit 8";
        continue;
      }
      ASSERT_TRUE(added.ok()) << added;
    }
    for (const auto& [id, output] : run()) {
      for (const CompletionOutput& completion : output.outputs) {
        EXPECT_EQ(completion.token_ids, foretold(static_cast<uint64_t>(id[0] - '0'), 12, completion.index))
            << num_blocks;
      }
    }
    if (num_blocks == 8) {
      EXPECT_GT(engine_->stats().num_preemptions, 0);
    }
  }
}

TEST_F(LLMEngineTest, AbortGivesWhatThereIsAndFreesEverything) {
  ASSERT_TRUE(engine_->add_request("a", inputs(), params(30, 1)).ok());
  ASSERT_TRUE(engine_->add_request("b", inputs(), params(3, 2)).ok());
  std::vector<RequestOutput> finished;
  ASSERT_TRUE(engine_->step(finished).ok());
  ASSERT_TRUE(engine_->step(finished).ok());
  const StatusOr<RequestOutput> aborted = engine_->abort_request("a");
  ASSERT_TRUE(aborted.ok());
  EXPECT_EQ(aborted->outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_EQ(aborted->outputs[0].token_ids, foretold(1, 2));
  EXPECT_FALSE(engine_->abort_request("a").ok());
  EXPECT_EQ(run().at("b").outputs[0].token_ids, foretold(2, 3));
}

TEST_F(LLMEngineTest, RefusesWhatCanNeverFitWithBothCounts) {
  rebuild(4);
  const Status status = engine_->add_request("big", inputs(5, 2), params(30, 1));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(error_message(status), ::testing::HasSubstr("10"));  // 2 cross + 8 self
  EXPECT_THAT(error_message(status), ::testing::HasSubstr("4"));
  EXPECT_FALSE(engine_->has_unfinished_requests());
}

TEST_F(LLMEngineTest, AnIdInFlightIsRefusedAndFreeAgainAfterwards) {
  ASSERT_TRUE(engine_->add_request("a", inputs(), params(2, 1)).ok());
  EXPECT_EQ(error_param(engine_->add_request("a", inputs(), params(2, 1))), "id");
  run();
  EXPECT_TRUE(engine_->add_request("a", inputs(), params(2, 1)).ok());
  run();
}

TEST_F(LLMEngineTest, ScoresThatAreNotNumbersFailTheirRequest) {
  executor_->give_no_numbers();
  ASSERT_TRUE(engine_->add_request("a", inputs(), params(5, 1)).ok());
  EXPECT_FALSE(run().at("a").error.empty());
}

TEST_F(LLMEngineTest, AnExecutorsErrorIsTheStepsError) {
  executor_->fail_next();
  ASSERT_TRUE(engine_->add_request("a", inputs(), params(5, 1)).ok());
  std::vector<RequestOutput> finished;
  EXPECT_FALSE(engine_->step(finished).ok());
}

TEST_F(LLMEngineTest, MetricsComeFromTheClock) {
  ASSERT_TRUE(engine_->add_request("a", inputs(), params(1, 1)).ok());
  clock_.advance(std::chrono::seconds(2));
  const RequestOutput output = run().at("a");
  EXPECT_DOUBLE_EQ(output.metrics.queue_s, 2.0);
  EXPECT_DOUBLE_EQ(output.metrics.first_token_s, 2.0);
  EXPECT_DOUBLE_EQ(output.metrics.total_s, 2.0);
}

}  // namespace
}  // namespace transept
