// A decoder prompt with an open token: the model chooses it in a pass of its own over the same encoded input, and then
// the request is as if it had been given so. Around the hash model (fake_model_executor_testing.h), whose truth is
// known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "async/async_engine.h"
#include "async/async_engine_testing.h"
#include "engine/obvious_decoder_testing.h"
#include "engine/random_requests_testing.h"
#include "engine/stream_deltas.h"
#include "rank/fake_model_executor_testing.h"
#include "rank/gated_executor_testing.h"

namespace transept {
namespace {

using namespace std::chrono_literals;
using testing::decode_obviously;
using testing::fake_scores;
using testing::FakeExecutor;
using testing::FakeModelExecutor;
using testing::fill_open_token;
using testing::GatedExecutor;
using ::testing::HasSubstr;
using testing::ObviousAnswer;
using testing::StepGate;

class OpenTokens : public ::testing::Test {
 protected:
  OpenTokens() { rebuild(64); }

  void rebuild(int32_t num_blocks, int32_t max_num_seqs = 16, bool share = true) {
    options_ = {};
    options_.scheduler.max_num_batched_tokens = 64;
    options_.scheduler.max_num_encoder_tokens = 64;
    options_.scheduler.max_num_seqs = max_num_seqs;
    options_.blocks.block_size = 4;
    options_.blocks.num_device_blocks = num_blocks;
    options_.blocks.num_host_blocks = num_blocks;
    options_.blocks.watermark = 0;
    options_.blocks.share_identical_inputs = share;
    options_.max_trace_steps = 1000;
    engine_ =
        std::make_unique<LLMEngine>(options_, std::make_unique<FakeModelExecutor>(options_.blocks), nullptr, clock_);
  }

  // Token 1 of 3 is open.
  static EncoderDecoderInputs inputs(int32_t first = 3) {
    EncoderDecoderInputs inputs;
    inputs.set_encoder_ids({first, 1, 4, 1, 5, 9});
    inputs.prompt_token_ids = {2, 0, 7};
    inputs.open_token = OpenToken{.index = 1, .choices = {11, 4, 8}};
    return inputs;
  }
  static EncoderDecoderInputs filled(EncoderDecoderInputs inputs) {
    fill_open_token(inputs);
    return inputs;
  }
  static SamplingParams greedy(int32_t max_tokens) {
    SamplingParams params;
    params.max_tokens = max_tokens;
    return params;
  }

  void add(const std::string& id, const EncoderDecoderInputs& inputs, const SamplingParams& params,
           const RequestOptions& options = {}) {
    const Status added = engine_->add_request(id, inputs, params, options);
    EXPECT_TRUE(added.ok()) << added;
  }

  std::vector<RequestOutput> run() {
    std::vector<RequestOutput> outputs;
    for (int step = 0; step < 1000 && engine_->has_unfinished_requests(); ++step) {
      EXPECT_TRUE(engine_->step(outputs).ok());
      EXPECT_TRUE(engine_->scheduler().check_invariants().ok());
    }
    EXPECT_FALSE(engine_->has_unfinished_requests());
    expect_nothing_left();
    return outputs;
  }

  void expect_nothing_left() {
    engine_->collect_dropped_inputs();
    const BlockSpaceManager& blocks = engine_->scheduler().blocks();
    EXPECT_EQ(blocks.get_num_free_device_blocks(), blocks.num_device_blocks());
    EXPECT_EQ(engine_->num_unfinished_requests(), 0u);
  }

  static void expect_right(const RequestOutput& output, const EncoderDecoderInputs& inputs,
                           const SamplingParams& params) {
    const EncoderDecoderInputs closed = filled(inputs);
    EXPECT_EQ(output.error, "");
    EXPECT_EQ(output.prompt_token_ids, closed.prompt_token_ids);
    const ObviousAnswer want = decode_obviously(closed, params, fake_scores);
    ASSERT_EQ(output.outputs.size(), want.outputs.size());
    for (size_t i = 0; i < want.outputs.size(); ++i) {
      EXPECT_EQ(output.outputs[i].token_ids, want.outputs[i].token_ids) << i;
      EXPECT_EQ(output.outputs[i].finish_reason, want.outputs[i].finish_reason) << i;
    }
  }

  FakeClock clock_;
  LLMEngine::Options options_;
  std::unique_ptr<LLMEngine> engine_;
};

TEST_F(OpenTokens, IsFilledByTheBestOfItsChoicesOverOneEncode) {
  for (const bool share : {true, false}) {
    rebuild(64, 16, share);
    for (const int32_t first : {3, 5, 6, 8}) {
      add(str_cat(first), inputs(first), greedy(6));
      const std::vector<RequestOutput> outputs = run();
      ASSERT_EQ(outputs.size(), 1u);
      expect_right(outputs[0], inputs(first), greedy(6));
      EXPECT_EQ(outputs[0].encoder_prompt_token_ids, inputs(first).encoder_token_ids());
    }
    EXPECT_EQ(engine_->executor_stats().num_encoder_runs, 4);
    EXPECT_EQ(engine_->stats().num_encoder_cache_hits, 4);
    EXPECT_EQ(engine_->stats().num_reencodes, 0);
  }
}

TEST_F(OpenTokens, OfEveryKindOfRequest) {
  SamplingParams several = greedy(5);
  several.n = 4;
  several.temperature = 1;
  several.seed = 7;
  SamplingParams best = several;
  best.n = 2;
  best.best_of = 5;
  SamplingParams beams = greedy(7);
  beams.num_beams = beams.n = 4;
  beams.eos_token_ids = {5};
  SamplingParams logprobs = greedy(4);
  logprobs.logprobs = 2;
  logprobs.prompt_logprobs = 1;
  int id = 0;
  for (const SamplingParams& params : {several, best, beams, logprobs}) {
    add(str_cat(id), inputs(), params);
    const std::vector<RequestOutput> outputs = run();
    ASSERT_EQ(outputs.size(), 1u);
    expect_right(outputs[0], inputs(), params);
    ++id;
  }
  SamplingParams score = greedy(1);
  score.score_only = true;
  score.prompt_logprobs = 0;
  add("score", inputs(), score);
  const std::vector<RequestOutput> scored = run();
  ASSERT_EQ(scored.size(), 1u);
  ASSERT_TRUE(scored[0].prompt_logprobs.has_value());
  EXPECT_EQ(scored[0].prompt_logprobs->size(), 3u);
  EXPECT_EQ((*scored[0].prompt_logprobs)[1]->front().token_id, filled(inputs()).prompt_token_ids[1]);
}

TEST_F(OpenTokens, AStreamTellsNothingOfIt) {
  add("s", inputs(), greedy(6), {.stream = true});
  std::vector<RequestOutput> pieces = run();
  ASSERT_GT(pieces.size(), 1u);
  for (size_t i = 0; i + 1 < pieces.size(); ++i) EXPECT_FALSE(pieces[i].finished);
  RequestOutput whole = std::move(pieces.front());
  for (size_t i = 1; i < pieces.size(); ++i) merge_delta(whole, std::move(pieces[i]));
  EXPECT_TRUE(whole.finished);
  expect_right(whole, inputs(), greedy(6));
}

// One after the other, each twice: nobody may overtake between the two.
TEST_F(OpenTokens, KeepsTheOrderOfArrival) {
  rebuild(64, 1);
  for (int i = 0; i < 6; ++i) {
    EncoderDecoderInputs request = inputs(i);
    if (i % 3 == 2) request.open_token.reset();
    add(str_cat(i), request, greedy(2 + i % 2));
  }
  const std::vector<RequestOutput> outputs = run();
  ASSERT_EQ(outputs.size(), 6u);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(outputs[i].request_id, str_cat(i));
}

TEST_F(OpenTokens, TheWaitAndTheEncodeOfItsPassAreTheRequests) {
  rebuild(64, 1);
  clock_.advance(1s);
  add("first", filled(inputs(8)), greedy(3));
  add("open", inputs(), greedy(3));
  std::vector<RequestOutput> outputs;
  while (engine_->has_unfinished_requests()) {
    ASSERT_TRUE(engine_->step(outputs).ok());
    clock_.advance(1s);
  }
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_DOUBLE_EQ(outputs[1].metrics.queue_s, 3);  // the steps of the first
  EXPECT_GE(outputs[1].metrics.encode_s, 0);        // there was one
  EXPECT_DOUBLE_EQ(outputs[1].metrics.first_token_s, 4);
}

TEST_F(OpenTokens, OverAHandleThatIsDroppedMeanwhile) {
  {
    const StatusOr<EncodedInput> handle = engine_->encode(inputs());
    ASSERT_TRUE(handle.ok()) << handle.status();
    EncoderDecoderInputs decoder = inputs();
    decoder.items.clear();
    ASSERT_TRUE(engine_->add_request("a", *handle, decoder, greedy(6)).ok());
    ASSERT_TRUE(engine_->add_request("b", *handle, decoder, greedy(3)).ok());
  }
  std::map<std::string, RequestOutput> outputs;
  for (RequestOutput& output : run()) outputs.emplace(output.request_id, output);
  ASSERT_EQ(outputs.size(), 2u);
  expect_right(outputs.at("a"), inputs(), greedy(6));
  expect_right(outputs.at("b"), inputs(), greedy(3));
  EXPECT_EQ(engine_->executor_stats().num_encoder_runs, 1);
}

TEST_F(OpenTokens, AbortWhileItIsOpen) {
  rebuild(64, 1);
  add("running", filled(inputs(8)), greedy(5));
  add("open", inputs(), greedy(5));
  EXPECT_EQ(error_param(engine_->add_request("open", inputs(), greedy(5))), "id");
  std::vector<RequestOutput> outputs;
  ASSERT_TRUE(engine_->step(outputs).ok());
  const StatusOr<RequestOutput> aborted = engine_->abort_request("open");
  ASSERT_TRUE(aborted.ok()) << aborted.status();
  ASSERT_EQ(aborted->outputs.size(), 1u);
  EXPECT_EQ(aborted->outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_TRUE(aborted->outputs[0].token_ids.empty());
  EXPECT_FALSE(engine_->abort_request("open").ok());
  // The name is free at once, and means the new request.
  add("open", inputs(5), greedy(3));
  outputs = run();
  ASSERT_EQ(outputs.size(), 2u);
  expect_right(outputs[1], inputs(5), greedy(3));
}

TEST_F(OpenTokens, WhatCanNeverFitIsRefusedAtOnceAsIfItWereClosed) {
  rebuild(8, 4);
  SamplingParams sampled = greedy(4);
  sampled.n = 5;
  SamplingParams beams = greedy(4);
  beams.num_beams = 5;
  for (const SamplingParams& params : {greedy(1000), sampled, beams}) {
    const Status open = engine_->add_request("r", inputs(), params);
    const Status closed = engine_->add_request("r", filled(inputs()), params);
    EXPECT_FALSE(open.ok());
    EXPECT_EQ(open, closed);
    EXPECT_EQ(error_param(open), error_param(closed));
  }
  SamplingParams probe = greedy(2);
  probe.probe = PromptProbe{.prompt_index = 3, .token_id = 0};
  EXPECT_EQ(error_param(engine_->add_request("r", inputs(), probe)), "probe");
  EncoderDecoderInputs alone = inputs();
  alone.items.clear();
  EXPECT_FALSE(engine_->add_request("r", alone, greedy(2)).ok());
  EXPECT_FALSE(engine_->has_unfinished_requests());
  expect_nothing_left();
}

TEST_F(OpenTokens, FeaturesAreLetGoWhenTheRequestHasEnded) {
  auto executor = std::make_unique<FakeExecutor>();
  LLMEngine engine(options_, std::move(executor), nullptr, clock_);
  std::vector<std::weak_ptr<const EncoderFeatures>> seen;
  std::vector<RequestOutput> outputs;
  for (int i = 0; i < 20; ++i) {
    EncoderFeatures features;
    features.shape = {4};
    features.values = {static_cast<float>(i), 1, 2, 3};
    features.num_positions = 5;
    features.audio_seconds = 0.25;
    auto shared = std::make_shared<const EncoderFeatures>(std::move(features));
    seen.emplace_back(shared);
    EncoderDecoderInputs request = inputs();
    request.items.clear();
    request.set_encoder_features(std::move(shared));
    if (i % 2 == 0) request.open_token.reset();
    ASSERT_TRUE(engine.add_request(str_cat(i), std::move(request), greedy(3)).ok());
    while (engine.has_unfinished_requests()) ASSERT_TRUE(engine.step(outputs).ok());
  }
  ASSERT_EQ(outputs.size(), 20u);
  for (const RequestOutput& output : outputs) {
    EXPECT_DOUBLE_EQ(output.audio_seconds, 0.25);
    EXPECT_TRUE(output.encoder_prompt_token_ids.empty());
  }
  engine.collect_dropped_inputs();
  // The last plan may still stand.
  for (size_t i = 0; i + 1 < seen.size(); ++i) EXPECT_TRUE(seen[i].expired()) << i;
}

// ---- Errors of the model

TEST(OpenTokensErrors, ScoresThatAreNotNumbersFailTheRequestOnce) {
  FakeClock clock;
  LLMEngine::Options options;
  options.blocks = {.block_size = 4, .num_device_blocks = 50, .num_host_blocks = 0, .watermark = 0};
  auto executor = std::make_unique<FakeExecutor>();
  executor->give_no_numbers();
  LLMEngine engine(options, std::move(executor), nullptr, clock);
  EncoderDecoderInputs inputs;
  inputs.set_encoder_ids({1, 2});
  inputs.prompt_token_ids = {2, 0, 7};
  inputs.open_token = OpenToken{.index = 1, .choices = {4}};
  SamplingParams params;
  params.max_tokens = 5;
  ASSERT_TRUE(engine.add_request("a", inputs, params).ok());
  std::vector<RequestOutput> outputs;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(engine.step(outputs).ok());
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_THAT(outputs[0].error, HasSubstr("not numbers"));
  EXPECT_FALSE(engine.has_unfinished_requests());
  EXPECT_EQ(engine.num_unfinished_requests(), 0u);
  engine.collect_dropped_inputs();
  EXPECT_EQ(engine.scheduler().blocks().get_num_free_device_blocks(), 50);
}

// ---- The engine's thread

class OpenTokensAsync : public ::testing::Test {
 protected:
  OpenTokensAsync() {
    LLMEngine::Options options;
    options.scheduler.max_num_seqs = 4;
    options.blocks = {.block_size = 4, .num_device_blocks = 64, .num_host_blocks = 0, .watermark = 0};
    auto engine = std::make_unique<LLMEngine>(options, std::make_unique<GatedExecutor>(gate_), nullptr, clock_);
    engine_ = std::make_unique<AsyncEngine>(std::move(engine), AsyncEngine::Options{}, clock_);
  }
  ~OpenTokensAsync() override {
    gate_->open();
    const std::unique_ptr<LLMEngine> engine = engine_->stop();
    engine->collect_dropped_inputs();
    EXPECT_EQ(engine->scheduler().blocks().get_num_free_device_blocks(), 64);
    EXPECT_EQ(engine->num_unfinished_requests(), 0u);
  }

  RequestStream add(const std::string& id, std::optional<TimePoint> deadline = {}) {
    RequestSpec spec;
    spec.id = id;
    spec.inputs.set_encoder_ids({1, 2, 3});
    spec.inputs.prompt_token_ids = {2, 0, 7};
    spec.inputs.open_token = OpenToken{.index = 1, .choices = {4}};
    spec.params.max_tokens = 3;
    spec.deadline = deadline;
    return testing::add_request(*engine_, std::move(spec));
  }

  FakeClock clock_;
  std::shared_ptr<StepGate> gate_ = std::make_shared<StepGate>();
  std::unique_ptr<AsyncEngine> engine_;
};

TEST_F(OpenTokensAsync, IsAnsweredOnce) {
  gate_->open();
  std::vector<RequestStream> streams;
  streams.reserve(8);
  for (int i = 0; i < 8; ++i) streams.push_back(add(str_cat(i)));
  for (RequestStream& stream : streams) {
    const StatusOr<RequestOutput> output = stream.next();
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_EQ(output->outputs.at(0).token_ids.size(), 3u);
    EXPECT_EQ(output->request_id, stream.request_id());
    EXPECT_TRUE(stream.has_ended());
  }
  EXPECT_EQ(engine_->snapshot().counts.finished, 8);
}

TEST_F(OpenTokensAsync, AbortDeadlineAndLettingGoBeforeItIsFilled) {
  RequestStream aborted = add("aborted");
  RequestStream expired = add("expired", clock_.now() + 1s);
  std::optional<RequestStream> let_go = add("let go");
  RequestStream kept = add("kept");
  gate_->wait_for_step();
  aborted.abort();
  let_go.reset();
  clock_.advance(2s);
  gate_->open();
  const StatusOr<RequestOutput> output = aborted.next();
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->outputs.at(0).finish_reason, FinishReason::kAbort);
  const Status late = expired.next().status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(kept.next().ok());
}

TEST_F(OpenTokensAsync, AFailingExecutorEndsIt) {
  RequestStream stream = add("a");
  gate_->wait_for_step();
  gate_->fail();
  EXPECT_THAT(error_message(stream.next().status()), HasSubstr("the device is gone"));
}

}  // namespace
}  // namespace transept
