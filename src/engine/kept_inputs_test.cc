// What stays for later requests, over the model that is a hash: inputs and prefixes are found again, by those of the
// same salt alone, until they are given up; and no answer depends on it.
#include <gtest/gtest.h>

#include <functional>

#include "engine/answer_difference_testing.h"
#include "engine/llm_engine.h"
#include "engine/obvious_decoder_testing.h"
#include "engine/random_requests_testing.h"
#include "rank/fake_model_executor_testing.h"

namespace transept::testing {
namespace {

using namespace std::chrono_literals;

class KeptInputsTest : public ::testing::Test {
 protected:
  KeptInputsTest() {
    rebuild([](LLMEngine::Options&) {});
  }

  void rebuild(const std::function<void(LLMEngine::Options&)>& change) {
    LLMEngine::Options options;
    options.blocks = {.block_size = 4, .num_device_blocks = 40, .num_host_blocks = 0, .watermark = 0};
    options.blocks.share_identical_inputs = options.blocks.cache_inputs = options.blocks.cache_prefixes = true;
    options.blocks.track_freed_blocks = true;
    options.blocks.shuffle_seed = 5;
    change(options);
    engine_ =
        std::make_unique<LLMEngine>(options, std::make_unique<FakeModelExecutor>(options.blocks), nullptr, clock_);
  }

  static RandomRequest request(std::vector<int32_t> encoder, std::vector<int32_t> decoder, std::string salt = "") {
    RandomRequest request;
    request.inputs.set_encoder_ids(std::move(encoder));
    request.inputs.prompt_token_ids = std::move(decoder);
    request.inputs.cache_salt = std::move(salt);
    request.params.max_tokens = 6;
    return request;
  }

  // Runs it alone, and compares its answer with the obvious one.
  RequestOutput run(const RandomRequest& request) {
    EXPECT_TRUE(engine_->add_request("r", request.inputs, request.params).ok());
    std::vector<RequestOutput> finished;
    while (finished.empty()) EXPECT_TRUE(engine_->step(finished).ok());
    EXPECT_EQ(difference(request, finished[0], decode_obviously(request.inputs, request.params, fake_scores)), "");
    EXPECT_TRUE(engine_->scheduler().check_invariants().ok());
    return finished[0];
  }
  int64_t num_encodes() const { return engine_->executor_stats().num_encoder_runs; }
  const BlockSpaceManager& blocks() const { return engine_->scheduler().blocks(); }

  FakeClock clock_;
  std::unique_ptr<LLMEngine> engine_;
};

const std::vector<int32_t> kInput = {3, 1, 4, 1, 5, 9, 2};
const std::vector<int32_t> kPrompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};  // two full blocks, and three tokens

TEST_F(KeptInputsTest, AnInputIsEncodedOnceForRequestsAMinuteApart) {
  EXPECT_EQ(run(request(kInput, {1})).metrics.num_cached_tokens, 0);
  clock_.advance(1min);
  EXPECT_EQ(run(request(kInput, {2})).metrics.num_cached_tokens, 7);
  RandomRequest beams = request(kInput, {2});
  beams.params.num_beams = 3;
  run(beams);
  RandomRequest several = request(kInput, {2});
  several.params.n = 3;
  several.params.temperature = 1;
  run(several);
  EXPECT_EQ(num_encodes(), 1);
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.num_encoder_cache_hits, 3);
  EXPECT_EQ(stats.num_encoder_cache_misses, 1);
  EngineState state;
  engine_->describe(state);
  EXPECT_EQ(state.blocks.cached_tables, 1);
  EXPECT_EQ(state.blocks.cached, 2);
  EXPECT_EQ(blocks().num_available_device_blocks(), 40);
}

TEST_F(KeptInputsTest, NothingStaysWhereItIsOff) {
  rebuild([](LLMEngine::Options& options) { options.blocks.cache_inputs = options.blocks.cache_prefixes = false; });
  run(request(kInput, kPrompt));
  EXPECT_EQ(run(request(kInput, kPrompt)).metrics.num_cached_tokens, 0);
  EXPECT_EQ(num_encodes(), 2);
  EXPECT_EQ(blocks().get_num_free_device_blocks(), 40);
}

TEST_F(KeptInputsTest, SaltsShareNothingAtTheSameTimeOrLater) {
  run(request(kInput, kPrompt));
  EXPECT_EQ(run(request(kInput, kPrompt, "a")).metrics.num_cached_tokens, 0);
  EXPECT_EQ(run(request(kInput, kPrompt, "b")).metrics.num_cached_tokens, 0);
  EXPECT_EQ(num_encodes(), 3);
  EXPECT_EQ(run(request(kInput, kPrompt, "a")).metrics.num_cached_tokens, 7 + 8);
  EXPECT_EQ(run(request(kInput, kPrompt)).metrics.num_cached_tokens, 7 + 8);
  EXPECT_EQ(num_encodes(), 3);
  // Without an encoder input the salt is all that tells prefixes apart.
  EXPECT_EQ(run(request({}, kPrompt)).metrics.num_cached_tokens, 0);
  EXPECT_EQ(run(request({}, kPrompt, "a")).metrics.num_cached_tokens, 0);
  EXPECT_EQ(run(request({}, kPrompt, "a")).metrics.num_cached_tokens, 8);
  // In flight together, two salts encode twice and two requests of one salt once.
  for (const char* id : {"x", "y", "z"}) {
    RandomRequest one = request({7, 7, 7}, {1}, *id == 'x' ? "a" : "b");
    ASSERT_TRUE(engine_->add_request(id, one.inputs, one.params).ok());
  }
  std::vector<RequestOutput> finished;
  while (finished.size() < 3) ASSERT_TRUE(engine_->step(finished).ok());
  EXPECT_EQ(num_encodes(), 5);
}

TEST_F(KeptInputsTest, APrefixIsComputedOnceForOneInput) {
  run(request(kInput, kPrompt));
  EXPECT_EQ(engine_->stats().num_prefix_cache_queries, 11);
  EXPECT_EQ(engine_->stats().num_prefix_cache_hits, 0);
  const int64_t num_rows = engine_->stats().num_prompt_tokens;
  EXPECT_EQ(run(request(kInput, kPrompt)).metrics.num_cached_tokens, 7 + 8);
  EXPECT_EQ(engine_->stats().num_prompt_tokens - num_rows, 3);
  EXPECT_EQ(engine_->stats().num_prefix_cache_hits, 8);
  // Of a prompt that is the blocks and nothing else one block is computed: its last row is wanted.
  std::vector<int32_t> short_prompt(kPrompt.begin(), kPrompt.begin() + 8);
  EXPECT_EQ(run(request(kInput, short_prompt)).metrics.num_cached_tokens, 7 + 4);
  // One that parts in the second block, one of another input, one that is below two blocks.
  std::vector<int32_t> parts = kPrompt;
  parts[6] = 0;
  EXPECT_EQ(run(request(kInput, parts)).metrics.num_cached_tokens, 7 + 4);
  EXPECT_EQ(run(request({3, 1, 4, 1, 5, 9, 3}, kPrompt)).metrics.num_cached_tokens, 0);
  EXPECT_EQ(run(request(kInput, {1, 2, 3, 4, 5, 6, 7})).metrics.num_cached_tokens, 7);
}

// Two steps take the prompt. What the first did not compute has room already, and is no block to be found.
TEST_F(KeptInputsTest, APromptThatIsBrokenOffLeavesWhatWasComputed) {
  rebuild([](LLMEngine::Options& options) {
    options.scheduler.max_num_batched_tokens = options.scheduler.max_num_seqs = 6;
  });
  const RandomRequest asked = request(kInput, kPrompt);
  ASSERT_TRUE(engine_->add_request("broken off", asked.inputs, asked.params).ok());
  std::vector<RequestOutput> finished;
  ASSERT_TRUE(engine_->step(finished).ok());
  ASSERT_EQ(engine_->stats().num_prompt_tokens, 6);
  ASSERT_TRUE(engine_->abort_request("broken off").ok());
  EXPECT_EQ(run(asked).metrics.num_cached_tokens, 7 + 4) << "of the second block two rows were computed";
}

// An answer's blocks are remembered with the prompt's: a longer prompt goes on from them.
TEST_F(KeptInputsTest, AnAnswerIsThePrefixOfWhatGoesOnFromIt) {
  const RequestOutput answer = run(request(kInput, kPrompt));
  std::vector<int32_t> further = kPrompt;
  const std::vector<int32_t>& ids = answer.outputs[0].token_ids;
  further.insert(further.end(), ids.begin(), ids.end());
  ASSERT_EQ(further.size(), 17u);
  // 16 of its 17 tokens were rows: the last one's was not computed.
  EXPECT_EQ(run(request(kInput, further)).metrics.num_cached_tokens, 7 + 16);
}

TEST_F(KeptInputsTest, RowsThatAreWantedAreComputed) {
  run(request(kInput, kPrompt));
  RandomRequest scored = request(kInput, kPrompt);
  scored.params.score_only = true;
  scored.params.prompt_logprobs = 0;
  scored.params.max_tokens = 1;
  EXPECT_EQ(run(scored).metrics.num_cached_tokens, 7);
  RandomRequest listed = request(kInput, kPrompt);
  listed.params.prompt_logprobs = 2;
  EXPECT_EQ(run(listed).metrics.num_cached_tokens, 7);
  RandomRequest captured = request(kInput, kPrompt);
  captured.params.capture_cross_attention = true;
  EXPECT_EQ(run(captured).metrics.num_cached_tokens, 7);
  RandomRequest probed = request(kInput, kPrompt);
  probed.params.probe = {.prompt_index = 6, .token_id = 3};
  EXPECT_EQ(run(probed).metrics.num_cached_tokens, 7 + 4) << "row 6 is of the second block";
  RandomRequest encoded = request(kInput, kPrompt);
  encoded.params.capture_encoder_output = true;
  const int64_t before = num_encodes();
  EXPECT_EQ(run(encoded).metrics.num_cached_tokens, 0);
  EXPECT_EQ(num_encodes(), before + 1) << "its rows are asked for";
}

TEST_F(KeptInputsTest, WhatIsTooOldIsFreeWhetherTheEngineStepsOrNot) {
  rebuild([](LLMEngine::Options& options) { options.blocks.cache_ttl = 10s; });
  run(request(kInput, kPrompt));
  EXPECT_EQ(engine_->next_step_time(), clock_.now() + 10s);
  clock_.advance(9s);
  EXPECT_EQ(run(request(kInput, kPrompt)).metrics.num_cached_tokens, 7 + 8);
  clock_.advance(10s);
  EXPECT_LE(engine_->next_step_time(), clock_.now());
  std::vector<RequestOutput> none;
  EXPECT_TRUE(engine_->step(none).ok());
  EXPECT_EQ(blocks().get_num_free_device_blocks(), 40);
  EXPECT_EQ(engine_->next_step_time(), TimePoint::max());
  EXPECT_EQ(engine_->stats().num_encoder_cache_expirations, 1);
  EXPECT_EQ(run(request(kInput, kPrompt)).metrics.num_cached_tokens, 0);
  EXPECT_EQ(num_encodes(), 2);
}

TEST_F(KeptInputsTest, ATtlOfZeroKeepsNothing) {
  rebuild([](LLMEngine::Options& options) { options.blocks.cache_ttl = Duration::zero(); });
  run(request(kInput, kPrompt));
  EXPECT_EQ(blocks().get_num_free_device_blocks(), 40);
  EXPECT_EQ(run(request(kInput, kPrompt)).metrics.num_cached_tokens, 0);
}

TEST_F(KeptInputsTest, ClearedWhileInUseItIsReadToItsEndAndFoundByNone) {
  RandomRequest first = request(kInput, kPrompt);
  first.params.max_tokens = 10;
  ASSERT_TRUE(engine_->add_request("a", first.inputs, first.params).ok());
  std::vector<RequestOutput> finished;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine_->step(finished).ok());
  EXPECT_EQ(engine_->clear_cache(), 0);
  run(request(kInput, kPrompt));
  EXPECT_EQ(num_encodes(), 2);
  while (engine_->has_unfinished_requests()) ASSERT_TRUE(engine_->step(finished).ok());
  EXPECT_EQ(difference(first, finished[0], decode_obviously(first.inputs, first.params, fake_scores)), "");
  EXPECT_GT(engine_->clear_cache(), 0) << "what the second left";
  EXPECT_EQ(blocks().get_num_free_device_blocks(), 40);
}

// Others' inputs may push this one out; none of them waits or is refused for it, and nothing grows.
TEST_F(KeptInputsTest, AFloodOfInputsIsTakenAsEver) {
  run(request(kInput, kPrompt));
  for (int32_t i = 0; i < 200; ++i) {
    const RequestOutput output = run(request({i % 13, i / 13 % 13, 5, i / 169}, {1}));
    EXPECT_EQ(output.metrics.queue_s, 0);
    EXPECT_EQ(blocks().num_available_device_blocks(), 40);
  }
  EXPECT_EQ(engine_->stats().num_preemptions, 0);
  EXPECT_GT(engine_->stats().num_encoder_cache_evictions, 100);
  EXPECT_EQ(run(request(kInput, kPrompt)).metrics.num_cached_tokens, 0);
}

}  // namespace
}  // namespace transept::testing
