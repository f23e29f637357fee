// Proves over a real (tiny, random) model that sharing changes what is computed and nothing of what comes out:
// identical inputs in flight, handles, pools too small for what is pinned, owners that leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "startup/tiny_model_testing.h"

namespace transept {
namespace {

using testing::Answer;
using testing::Answers;
using testing::Request;

class SharingTest : public testing::TinyModelTest {};

TEST_F(SharingTest, AnswersAreTheSameWithAndWithout) {
  const std::vector<Request> list = requests();
  for (const char* backend : {"cpu", "reference"}) {
    EngineConfig off = config(false);
    off.attention_backend = backend;
    LoadedModel alone = load(off);
    const Answers expected = run(*alone.engine, list);
    EXPECT_EQ(alone.engine->executor_stats().num_encoder_runs, 20);
    EXPECT_EQ(alone.engine->stats().num_encoder_cache_hits, 0);
    for (const size_t gap : {0, 2}) {
      EngineConfig shared = config();
      shared.attention_backend = backend;
      LoadedModel model = load(shared);
      EXPECT_EQ(run(*model.engine, list, gap), expected) << backend << ", one every " << gap << " steps";
      const int64_t num_runs = model.engine->executor_stats().num_encoder_runs;
      EXPECT_LT(num_runs, 20);
      EXPECT_EQ(model.engine->stats().num_encoder_cache_hits, 20 - num_runs);
      EXPECT_EQ(model.engine->stats().num_reencodes, 0);
      expect_nothing_left(*model.engine);
    }
  }
}

TEST_F(SharingTest, AnswersAreTheSameWhenThePoolIsTiny) {
  const std::vector<Request> list = requests();
  LoadedModel alone = load(config(false));
  const Answers expected = run(*alone.engine, list);
  for (const char* mode : {"recompute", "swap", "auto"}) {
    for (const size_t gap : {0, 1, 3}) {
      EngineConfig shared = tiny(30);
      shared.preemption_mode = mode;
      LoadedModel model = load(shared);
      EXPECT_EQ(run(*model.engine, list, gap), expected) << mode << ", one every " << gap << " steps";
      EXPECT_GT(model.engine->stats().num_preemptions, 0) << mode << ": the pool was not tiny";
      EXPECT_GT(model.engine->stats().num_encoder_cache_hits, 0) << mode;
      expect_nothing_left(*model.engine);
    }
  }
}

// From add_request on: a twin that waits while the first runs, and starts when it has ended, does not encode again.
TEST_F(SharingTest, AWaitingRequestKeepsItsInput) {
  EngineConfig one = config();
  one.max_num_seqs = 1;
  LoadedModel model = load(one);
  std::vector<Request> list = requests();
  list = {list[0], list[4], list[3], list[8], list[19]};
  run(*model.engine, list);
  EXPECT_EQ(model.engine->stats().max_running_seqs, 1);
  EXPECT_EQ(model.engine->executor_stats().num_encoder_runs, 2);
  EXPECT_EQ(model.engine->stats().num_encoder_cache_hits, 3);
  expect_nothing_left(*model.engine);
}

TEST_F(SharingTest, OneEncodeForManyRequestsAndForManyOutputs) {
  LoadedModel model = load(config());
  std::vector<Request> list;
  for (int32_t i = 0; i < 16; ++i) {
    Request& request = list.emplace_back();
    request.id = str_cat(i);
    request.inputs = inputs(1, 20);
    request.params.max_tokens = 6;
  }
  const Answers answers = run(*model.engine, list);
  for (const auto& [id, answer] : answers) EXPECT_EQ(answer, answers.at("0"));
  EXPECT_EQ(model.engine->executor_stats().num_encoder_runs, 1);
  EXPECT_EQ(model.engine->executor_stats().num_cross_kv_writes, 1);
  EXPECT_EQ(model.engine->stats().num_encoder_cache_hits, 15);
  list.resize(1);
  list[0].params.n = 16;
  list[0].params.temperature = 1;
  EXPECT_EQ(run(*model.engine, list).at("0").size(), 16u);
  EXPECT_EQ(model.engine->executor_stats().num_encoder_runs, 2);
  EXPECT_EQ(model.engine->executor_stats().num_cross_kv_writes, 2);
  list[0].params.n = 1;
  list[0].params.num_beams = 16;
  list[0].params.temperature = 0;
  EXPECT_EQ(run(*model.engine, list).at("0").size(), 1u);
  EXPECT_EQ(model.engine->executor_stats().num_encoder_runs, 3);
  EXPECT_EQ(model.engine->stats().num_reencodes, 0);
  expect_nothing_left(*model.engine);
}

// The sharer reads on when the owner has left, by an abort or because it is done.
TEST_F(SharingTest, TheOwnerMayLeaveWhileOthersRead) {
  std::vector<Request> list = requests();
  list.resize(5);
  list[4].inputs.set_encoder_ids(list[0].inputs.encoder_token_ids());
  list[4].params.max_tokens = 25;
  list[4].params.eos_token_ids.clear();
  LoadedModel alone = load(config(false));
  const Answers expected = run(*alone.engine, {list[4]});
  LoadedModel model = load(config());
  Answers answers;
  list[0].params.max_tokens = 25;
  list[0].params.eos_token_ids.clear();
  for (const bool finishes : {false, true}) {
    answers.clear();
    if (finishes) list[0].params.max_tokens = 4;
    add(*model.engine, list[0]);
    step(*model.engine, answers);
    add(*model.engine, list[4]);
    step(*model.engine, answers);
    step(*model.engine, answers);
    if (!finishes) {
      ASSERT_TRUE(model.engine->abort_request(list[0].id).ok());
    }
    // What is freed is poisoned, and given to others.
    add(*model.engine, list[1]);
    while (model.engine->has_unfinished_requests()) step(*model.engine, answers);
    EXPECT_EQ(answers.at(list[4].id), expected.at(list[4].id));
  }
  EXPECT_EQ(model.engine->executor_stats().num_encoder_runs, 4);
  EXPECT_EQ(model.engine->stats().num_encoder_cache_hits, 2);
  expect_nothing_left(*model.engine);
}

// ---- What stays

// The same bits with caches on, off and salted, over pools that give all of it up again and again.
TEST_F(SharingTest, AnswersAreTheSameWhateverStays) {
  std::vector<Request> list = requests();
  for (Request& request : list) {
    for (int32_t i = 0; i < 9; ++i) request.inputs.prompt_token_ids.push_back(5 + i);
  }
  for (const char* backend : {"cpu", "reference"}) {
    EngineConfig plain = config(false);
    plain.attention_backend = backend;
    for (Request& request : list) request.inputs.cache_salt = "";
    LoadedModel alone = load(plain);
    const Answers expected = run(*alone.engine, list);
    for (const int32_t num_blocks : {40, 60, 1000}) {
      for (const char* salt : {"", "a"}) {
        EngineConfig kept = tiny(num_blocks);
        kept.attention_backend = backend;
        kept.caches_inputs = kept.caches_prefixes = true;
        LoadedModel model = load(kept);
        for (size_t i = 0; i < list.size(); i += 2) list[i].inputs.cache_salt = salt;
        for (const size_t gap : {3, 0, 50}) {
          EXPECT_EQ(run(*model.engine, list, gap), expected)
              << backend << ", " << num_blocks << " blocks, salt " << salt;
        }
        const EngineStats stats = model.engine->stats();
        EXPECT_GT(stats.num_prefix_cache_hits, 0);
        EXPECT_GT(num_blocks == 1000 ? stats.num_encoder_cache_hits : stats.num_encoder_cache_evictions, 0);
        EXPECT_EQ(model.engine->scheduler().blocks().num_available_device_blocks(),
                  model.engine->scheduler().blocks().num_device_blocks());
        model.engine->clear_cache();
        expect_nothing_left(*model.engine);
      }
    }
  }
}

// ---- Handles

TEST_F(SharingTest, AHandleServesOneEncodeAfterTheFirstRequestHasEnded) {
  for (const bool share : {true, false}) {
    LoadedModel model = load(config(share));
    LLMEngine& engine = *model.engine;
    const std::vector<Request> list = requests();
    Answers expected = run(engine, {list[3], list[7], list[11], list[15]});  // all over one input
    const int64_t num_runs = engine.executor_stats().num_encoder_runs;

    StatusOr<EncodedInput> handle = engine.encode(list[3].inputs);
    ASSERT_TRUE(handle.ok());
    EXPECT_EQ(engine.executor_stats().num_encoder_runs, num_runs);
    Answers answers;
    for (const size_t i : {3, 7, 11, 15}) {
      EncoderDecoderInputs decoder;
      decoder.prompt_token_ids = list[i].inputs.prompt_token_ids;
      ASSERT_TRUE(engine.add_request(list[i].id, *handle, decoder, list[i].params).ok());
      if (i == 7) continue;  // two at once, the others one after the other
      while (engine.has_unfinished_requests()) step(engine, answers);
      EXPECT_EQ(num_pinned(engine), 7);  // 26 tokens
    }
    EXPECT_EQ(answers, expected);
    EXPECT_EQ(engine.executor_stats().num_encoder_runs, num_runs + 1);
    EXPECT_EQ(engine.executor_stats().num_cross_kv_writes, num_runs + 1);
    EXPECT_EQ(engine.stats().num_reencodes, 0);

    *handle = EncodedInput();
    engine.collect_dropped_inputs();
    EXPECT_EQ(num_pinned(engine), 0);
    expect_nothing_left(engine);
  }
}

TEST_F(SharingTest, ADroppedHandlesRequestsGoOn) {
  LoadedModel model = load(config());
  LLMEngine& engine = *model.engine;
  const Request request = requests()[2];
  const Answers expected = run(engine, {request});
  Answers answers;
  {
    StatusOr<EncodedInput> handle = engine.encode(request.inputs);
    ASSERT_TRUE(handle.ok());
    ASSERT_TRUE(engine.add_request(request.id, *handle, request.inputs, request.params).ok());
    step(engine, answers);
    std::thread([dropped = std::move(*handle)] {}).join();
  }
  while (engine.has_unfinished_requests()) step(engine, answers);
  EXPECT_EQ(answers, expected);
  EXPECT_EQ(num_pinned(engine), 0);
  expect_nothing_left(engine);
}

// With sharing on a plain request finds what a handle keeps, and a handle what a plain request brought.
TEST_F(SharingTest, HandlesAndPlainRequestsShare) {
  LoadedModel model = load(config());
  LLMEngine& engine = *model.engine;
  const Request request = requests()[2];
  Answers answers;
  add(engine, request);
  step(engine, answers);
  const StatusOr<EncodedInput> handle = engine.encode(request.inputs);
  while (engine.has_unfinished_requests()) step(engine, answers);
  const Answer first = std::exchange(answers, {}).at(request.id);
  EXPECT_EQ(num_pinned(engine), 5);
  ASSERT_TRUE(engine.add_request(request.id, *handle, request.inputs, request.params).ok());
  while (engine.has_unfinished_requests()) step(engine, answers);
  EXPECT_EQ(std::exchange(answers, {}).at(request.id), first);
  EXPECT_EQ(run(engine, {request}).at(request.id), first);
  EXPECT_EQ(engine.executor_stats().num_encoder_runs, 1);
}

// Pinned tables delay nobody: they go, the one used longest ago first, and what went is encoded again.
TEST_F(SharingTest, ATinyPoolGivesPinnedTablesUp) {
  const std::vector<Request> list = requests();
  LoadedModel alone = load(config(false));
  const Answers expected = run(*alone.engine, list);
  LoadedModel model = load(tiny(22));
  LLMEngine& engine = *model.engine;
  std::vector<EncodedInput> handles;
  for (size_t i = 0; i < 4; ++i) {  // 2, 3, 5 and 7 blocks
    StatusOr<EncodedInput> handle = engine.encode(list[i].inputs);
    ASSERT_TRUE(handle.ok());
    handles.push_back(std::move(*handle));
  }
  const auto ask = [&](size_t i) {
    Answers answers;
    const Status added = engine.add_request(list[i].id, handles[i % 4], list[i].inputs, list[i].params);
    ASSERT_TRUE(added.ok()) << added;
    while (engine.has_unfinished_requests()) step(engine, answers);
    EXPECT_EQ(answers.at(list[i].id), expected.at(list[i].id)) << i;
  };
  for (size_t i = 0; i < 4; ++i) ask(i);
  EXPECT_EQ(engine.executor_stats().num_encoder_runs, 4);
  EXPECT_EQ(num_pinned(engine), 17);
  // 7 cross blocks and 9 of its own: the three oldest go, and the group is neither refused nor preempted.
  Request large;
  large.id = "large";
  large.inputs = inputs(9, 26);
  large.params.max_tokens = 34;
  large.params.eos_token_ids.clear();
  EXPECT_EQ(run(engine, {large}).at("large")[0].first.size(), 34u);
  EXPECT_EQ(engine.stats().num_preemptions, 0);
  EXPECT_EQ(num_pinned(engine), 0) << "16 blocks of 22 were wanted, and 5 were free";
  EXPECT_EQ(engine.stats().num_reencodes, 0);
  ask(4);
  EXPECT_EQ(engine.stats().num_reencodes, 1);
  ask(8);
  EXPECT_EQ(engine.stats().num_reencodes, 1);
  EXPECT_EQ(engine.executor_stats().num_encoder_runs, 6);
  handles.clear();
  engine.collect_dropped_inputs();
  expect_nothing_left(engine);
}

// Everything at once: handles and plain requests over the same inputs under pools that preempt, aborts included.
TEST_F(SharingTest, HandlesUnderPreemption) {
  const std::vector<Request> list = requests();
  LoadedModel alone = load(config(false));
  const Answers expected = run(*alone.engine, list);
  for (const char* mode : {"recompute", "swap", "auto"}) {
    for (const bool share : {true, false}) {
      EngineConfig small = tiny(26, share);
      small.preemption_mode = mode;
      LoadedModel model = load(small);
      LLMEngine& engine = *model.engine;
      Answers answers;
      std::map<size_t, EncodedInput> handles;
      for (size_t i = 0; i < list.size(); ++i) {
        if (i % 4 != 3) {
          if (!handles.contains(i % 4)) handles[i % 4] = engine.encode(list[i].inputs).value();
          ASSERT_TRUE(engine.add_request(list[i].id, handles[i % 4], list[i].inputs, list[i].params).ok());
        } else {
          add(engine, list[i]);
        }
        if (i % 7 == 6) handles.erase(i % 4);
        step(engine, answers);
      }
      ASSERT_TRUE(engine.abort_request(list[19].id).ok());
      while (engine.has_unfinished_requests()) step(engine, answers);
      for (size_t i = 0; i < 19; ++i) EXPECT_EQ(answers[list[i].id], expected.at(list[i].id)) << mode << " " << i;
      EXPECT_GT(engine.stats().num_preemptions, 0) << mode;
      handles.clear();
      engine.collect_dropped_inputs();
      expect_nothing_left(engine);
    }
  }
}

// The two sides of a request, each processed by itself.
TEST_F(SharingTest, PromptsOfEachSideMakeARequestOverAHandle) {
  LoadedModel model = load(config());
  LLMEngine& engine = *model.engine;
  EncoderDecoderPrompt prompt;
  prompt.encoder.content = TokensPrompt{{7, 8, 9}};
  const auto encoder = model.prompts->process_encoder(prompt, {});
  ASSERT_TRUE(encoder.ok());
  EXPECT_TRUE(encoder->prompt_token_ids.empty());
  EncoderDecoderPrompt decoder_prompt;
  decoder_prompt.decoder = SingletonPrompt{TokensPrompt{{5}}, std::nullopt};
  EXPECT_EQ(error_param(model.prompts->process_encoder(decoder_prompt, {}).status()), "encoder_prompt");
  const auto decoder = model.prompts->process_decoder(decoder_prompt, {});
  ASSERT_TRUE(decoder.ok());
  EXPECT_TRUE(decoder->items.empty());
  const StatusOr<EncodedInput> handle = engine.encode(*encoder);
  ASSERT_TRUE(handle.ok());
  SamplingParams params;
  params.max_tokens = 2;
  ASSERT_TRUE(engine.add_request("a", *handle, *decoder, params).ok());
  std::vector<RequestOutput> finished;
  while (engine.has_unfinished_requests()) ASSERT_TRUE(engine.step(finished).ok());
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].encoder_prompt_token_ids, (std::vector<int32_t>{7, 8, 9}));
  EXPECT_EQ(finished[0].prompt_token_ids, (std::vector<int32_t>{2, 5}));
}

TEST_F(SharingTest, RefusesHandlesThatAreNone) {
  LoadedModel model = load(tiny(30)), other = load(config());
  LLMEngine& engine = *model.engine;
  const Request request = requests()[0];
  EXPECT_EQ(error_param(engine.add_request("a", EncodedInput(), request.inputs, request.params)), "encoded_input");
  const StatusOr<EncodedInput> foreign = other.engine->encode(request.inputs);
  ASSERT_TRUE(foreign.ok());
  EXPECT_EQ(error_param(engine.add_request("a", *foreign, request.inputs, request.params)), "encoded_input");
  EXPECT_EQ(error_param(engine.encode({}).status()), "prompt");
  EncoderDecoderInputs huge;
  huge.set_encoder_ids(std::vector<int32_t>(static_cast<size_t>(30 * 4), 5));
  EXPECT_EQ(error_param(engine.encode(huge).status()), "prompt");  // no block would be left for the decoder
  // A request that is refused leaves no trace of its input.
  EncoderDecoderInputs fine = request.inputs;
  SamplingParams params = request.params;
  params.n = 17;
  EXPECT_FALSE(engine.add_request("a", fine, params).ok());
  EXPECT_FALSE(engine.has_unfinished_requests());
  expect_nothing_left(engine);
}

}  // namespace
}  // namespace transept
