// Requests over handles whose items are spliced, crossed or both, several in one, with ranges and positions of their
// own, to the model of mosaic_model_testing.h: the bits are those of requests that bring their items, whatever is
// shared, given up, recomputed or encoded elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/mosaic_requests_testing.h"

namespace transept::testing {
namespace {

using ::testing::HasSubstr;

class HeldMosaic : public MosaicTest {
 protected:
  // Two items that are spliced, and one that is crossed.
  static MosaicRequest request(const std::string& id, std::vector<int32_t> places) {
    MosaicRequest request;
    request.id = id;
    for (int32_t i = 0; i < 14; ++i) request.inputs.prompt_token_ids.push_back(i % Mosaic::kVocab);
    request.inputs.items = {EncoderItem({}, Mosaic::features(3, 1)), EncoderItem({}, Mosaic::features(5, 2)),
                            EncoderItem({}, Mosaic::features(6, 0))};
    for (size_t i = 0; i < places.size(); ++i) {
      request.inputs.items[i].consumers = Consumers::kSplice;
      request.inputs.items[i].splice_offset = places[i];
    }
    request.params.max_tokens = 6;
    request.params.logprobs = 0;
    return request;
  }
  static int32_t num_pinned(const LLMEngine& engine) { return engine.scheduler().blocks().device_usage().pinned; }

  MosaicAnswers run_over(LLMEngine& engine, const EncodedInput& handle, const std::vector<MosaicRequest>& requests) {
    for (const MosaicRequest& request : requests) {
      const Status added = engine.add_request(request.id, handle, decoder_side(request), request.params);
      EXPECT_TRUE(added.ok()) << added;
    }
    MosaicAnswers answers;
    while (engine.has_unfinished_requests()) {
      std::vector<RequestOutput> finished;
      EXPECT_TRUE(engine.step(finished).ok());
      EXPECT_TRUE(engine.scheduler().check_invariants().ok());
      for (const RequestOutput& output : finished) add_answer(output, answers);
    }
    return answers;
  }
};

TEST_P(HeldMosaic, BitsAreThoseOfRequestsWithTheirOwnItems) {
  const std::unique_ptr<LLMEngine> roomy = make_engine({});
  const MosaicAnswers alone = run_alone(*roomy);
  const std::vector<MosaicSetup> setups = {
      {.name = "together"},
      {.name = "blocks of one token", .block_size = 1, .num_blocks = 4000},
      {.name = "parts", .max_num_batched_tokens = 17},
      {.name = "items in several steps", .max_num_encoder_tokens = 24},
      {.name = "recompute", .num_blocks = 47, .preemption = PreemptionMode::kRecompute},
      {.name = "swap", .num_blocks = 47, .num_host_blocks = 200, .preemption = PreemptionMode::kSwap, .shares = false},
      {.name = "nothing shared but by handles", .shares = false},
      {.name = "slices in a tiny pool", .num_blocks = 47, .slices = true, .starts_late = true},
      {.name = "loopback", .num_blocks = 53, .num_host_blocks = 40, .loops_back = true},
      {.name = "separated encoder", .max_num_encoder_tokens = 24, .num_blocks = 47, .is_separated = true},
  };
  LLMEngine::Stats sums;
  for (MosaicSetup setup : setups) {
    SCOPED_TRACE(setup.name);
    setup.holds = true;
    const std::unique_ptr<LLMEngine> engine = make_engine(setup);
    const MosaicAnswers answers = run(*engine, requests_, setup.starts_late ? 3 : 0);
    EXPECT_EQ(answers.size(), alone.size());
    for (const auto& [id, answer] : answers) EXPECT_EQ(answer, alone.at(id)) << id;
    const LLMEngine::Stats stats = engine->stats();
    sums.num_preemptions += stats.num_preemptions;
    sums.num_encoder_cache_hits += stats.num_encoder_cache_hits;
    sums.num_reencodes += stats.num_reencodes;
  }
  EXPECT_GT(sums.num_preemptions, 20);
  EXPECT_GT(sums.num_encoder_cache_hits, 20);
  EXPECT_GT(sums.num_reencodes, 3);
}

// What a handle keeps is not where its rows stand: each request says that of its own prompt.
TEST_P(HeldMosaic, EachRequestHasItsOwnPlaces) {
  const std::vector<MosaicRequest> requests = {request("a", {0, 3}), request("b", {2, 9}), request("c", {1, 4})};
  const std::unique_ptr<LLMEngine> plain = make_engine({});
  const MosaicAnswers expected = run(*plain, requests, 0);
  EXPECT_NE(expected.at("a"), expected.at("b"));
  for (const bool shares : {true, false}) {
    const std::unique_ptr<LLMEngine> engine = make_engine({.shares = shares});
    EncodedInput handle = engine->encode(encoder_side(requests[0])).value();
    EXPECT_EQ(run_over(*engine, handle, {requests[0], requests[1]}), [&] {
      MosaicAnswers two = expected;
      two.erase("c");
      return two;
    }());
    const int64_t num_encodes = engine->executor_stats().num_encoder_runs;
    EXPECT_GT(num_pinned(*engine), 0);
    EXPECT_EQ(run_over(*engine, handle, {requests[2]}).at("c"), expected.at("c"));
    EXPECT_EQ(engine->executor_stats().num_encoder_runs, num_encodes) << "long after the first has ended";
    EXPECT_EQ(engine->stats().num_reencodes, 0);
    handle = EncodedInput();
    engine->collect_dropped_inputs();
    expect_nothing_left(*engine);
  }
}

// Rows that are pinned delay nobody, and come back by an encode.
TEST_P(HeldMosaic, ATinyPoolGivesHeldRowsUp) {
  const MosaicRequest held = request("held", {0, 3});
  MosaicRequest large = request("large", {});
  large.inputs.items.clear();
  large.params.max_tokens = 60;
  const std::unique_ptr<LLMEngine> plain = make_engine({});
  const MosaicAnswer expected = run(*plain, {held}, 0).at("held");
  const std::unique_ptr<LLMEngine> engine = make_engine({.num_blocks = 30});
  EncodedInput handle = engine->encode(encoder_side(held)).value();
  EXPECT_EQ(run_over(*engine, handle, {held}).at("held"), expected);
  EXPECT_GT(num_pinned(*engine), 0);
  const Status added = engine->add_request("large", large.inputs, large.params);
  ASSERT_TRUE(added.ok()) << added;
  std::vector<RequestOutput> finished;
  while (engine->has_unfinished_requests()) ASSERT_TRUE(engine->step(finished).ok());
  EXPECT_EQ(finished.at(0).error, "");
  EXPECT_EQ(engine->stats().num_preemptions, 0);
  EXPECT_EQ(engine->stats().num_reencodes, 0);
  EXPECT_EQ(run_over(*engine, handle, {held}).at("held"), expected);
  EXPECT_GT(engine->stats().num_reencodes, 0);
  handle = EncodedInput();
  engine->collect_dropped_inputs();
  expect_nothing_left(*engine);
}

TEST_P(HeldMosaic, AbortedRequestsLeaveTheHandleItsRows) {
  const std::vector<MosaicRequest> requests = {request("a", {0, 3}), request("b", {2, 9})};
  const std::unique_ptr<LLMEngine> plain = make_engine({});
  const MosaicAnswers expected = run(*plain, requests, 0);
  const std::unique_ptr<LLMEngine> engine = make_engine({.max_num_batched_tokens = 17});  // a prompt takes two steps
  EncodedInput handle = engine->encode(encoder_side(requests[0])).value();
  for (int32_t num_steps = 0; num_steps < 4; ++num_steps) {
    for (const MosaicRequest& request : requests) {
      ASSERT_TRUE(engine->add_request(request.id, handle, decoder_side(request), request.params).ok());
    }
    std::vector<RequestOutput> finished;
    for (int32_t i = 0; i < num_steps; ++i) ASSERT_TRUE(engine->step(finished).ok());
    ASSERT_TRUE(engine->abort_request("a").ok());
    MosaicAnswers answers;
    while (engine->has_unfinished_requests()) ASSERT_TRUE(engine->step(finished).ok());
    for (const RequestOutput& output : finished) add_answer(output, answers);
    EXPECT_EQ(answers.at("b"), expected.at("b")) << num_steps;
  }
  EXPECT_EQ(engine->stats().num_reencodes, 0);
  EXPECT_EQ(run_over(*engine, handle, {requests[0]}).at("a"), expected.at("a"));
  handle = EncodedInput();
  engine->collect_dropped_inputs();
  expect_nothing_left(*engine);
}

TEST_P(HeldMosaic, PlacesThatDoNotFitAreRefused) {
  const std::unique_ptr<LLMEngine> engine = make_engine({});
  const EncodedInput handle = engine->encode(encoder_side(request("", {0, 3}))).value();
  const auto refusal = [&](const EncoderDecoderInputs& inputs) {
    SamplingParams params;
    params.max_tokens = 1;
    const Status status = engine->add_request("x", handle, inputs, params);
    EXPECT_FALSE(status.ok());
    return str_cat(error_param(status), ": ", error_message(status));
  };
  EncoderDecoderInputs none;
  none.prompt_token_ids.assign(14, 1);
  EXPECT_THAT(refusal(none), HasSubstr("items: the handle has 3 items, which stand within the prompt, and the request "
                                       "says of 0 where"));
  EXPECT_THAT(refusal(decoder_side(request("", {0, 2}))), HasSubstr("items: item 1 stands at tokens 2 to 7"));
  EXPECT_THAT(refusal(decoder_side(request("", {0, 10}))), HasSubstr("of a prompt of 14"));
  EXPECT_FALSE(engine->has_unfinished_requests());
}

// A decode instance holds what encode instances encode, or, where none is there, what it encodes itself.
TEST_P(HeldMosaic, RowsFromElsewhereGiveTheSameBits) {
  const std::unique_ptr<LLMEngine> roomy = make_engine({});
  const MosaicAnswers alone = run_alone(*roomy);
  const std::vector<MosaicSetup> setups = {
      {.name = "asked", .is_remote = true, .asks = true},
      {.name = "asked in parts", .max_num_batched_tokens = 17, .loops_back = true, .is_remote = true, .asks = true},
      {.name = "asked again after a recompute",
       .num_blocks = 60,
       .preemption = PreemptionMode::kRecompute,
       .is_remote = true,
       .asks = true},
      {.name = "encoded here", .is_remote = true, .asks = true, .falls_back = true},
  };
  for (MosaicSetup setup : setups) {
    SCOPED_TRACE(setup.name);
    setup.holds = true;
    const std::unique_ptr<LLMEngine> engine = make_engine(setup);
    const MosaicAnswers answers = run(*engine, requests_, 2);
    EXPECT_EQ(answers.size(), alone.size());
    for (const auto& [id, answer] : answers) EXPECT_EQ(answer, alone.at(id)) << id;
    EXPECT_GT(asker_->num_asks, 10);
    EXPECT_EQ(engine->stats().num_local_encodes > 0, setup.falls_back);
    settle(*engine);
    EXPECT_EQ(engine->remote_inputs()->cache().num_uses(), 0);
    const BlockSpaceManager& blocks = engine->scheduler().blocks();
    EXPECT_EQ(blocks.num_available_device_blocks(), blocks.num_device_blocks());
  }
}

// Also where the engine asks for rows of a group that it has already.
TEST_P(HeldMosaic, RowsOfAnotherWidthEndTheirRequest) {
  if (GetParam() == Mosaic::kDim) return;  // there is no other
  const std::unique_ptr<LLMEngine> engine = make_engine({.name = "asked", .is_remote = true, .asks = true});
  asker_->wrong_width = GetParam();
  const MosaicRequest held = request("a", {0, 3});
  const EncodedInput handle = engine->encode(encoder_side(held)).value();
  ASSERT_EQ(engine->add_request("a", handle, decoder_side(held), held.params), ok_status());
  std::vector<RequestOutput> finished;
  for (int32_t i = 0; i < 1000 && engine->has_unfinished_requests(); ++i) {
    clock_.advance(std::chrono::milliseconds(1));
    encoders_->run();
    ASSERT_EQ(engine->step(finished), ok_status());
  }
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_THAT(finished[0].error, HasSubstr(str_cat("was announced with rows of width ", GetParam(), ", not 24")));
  EXPECT_EQ(finished[0].error_param, "encoded_inputs");
}

INSTANTIATE_TEST_SUITE_P(CrossWidths, HeldMosaic, ::testing::Values(20, Mosaic::kDim, 28),
                         [](const auto& test) { return str_cat("Width", test.param); });

}  // namespace
}  // namespace transept::testing
