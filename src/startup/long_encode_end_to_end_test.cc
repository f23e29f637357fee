// Proves over a real (tiny, random) model that encodes which run for a share of several steps change when things happen
// and nothing of what comes out: others decode meanwhile, owners leave in the midst, pools are too small.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "startup/tiny_model_testing.h"

namespace transept {
namespace {

using testing::Answers;
using testing::Request;

class LongEncodeTest : public testing::TinyModelTest {
 protected:
  // Slices so short that any encode takes some.
  EngineConfig sliced(EngineConfig config) const {
    config.encode_slice = "0.001";
    return config;
  }

  // Somebody decodes from now on, and an encode was measured.
  void add_decoder(LLMEngine& engine, Answers& answers) {
    Request first{.id = "first", .inputs = inputs(1, 5)};
    first.params.max_tokens = 50;
    first.params.ignore_eos = true;
    add(engine, first);
    step(engine, answers);
  }
};

TEST_F(LongEncodeTest, AnswersAreTheSameWithAndWithout) {
  const std::vector<Request> list = requests();
  for (const char* backend : {"cpu", "reference"}) {
    EngineConfig whole = config();
    whole.attention_backend = backend;
    LoadedModel alone = load(whole);
    const Answers expected = run(*alone.engine, list);
    EXPECT_EQ(alone.engine->stats().num_long_encodes, 0);
    for (const int32_t threads : {1, 3}) {
      EngineConfig config = sliced(whole);
      config.threads = threads;
      LoadedModel model = load(config);
      EXPECT_EQ(run(*model.engine, list, 2), expected) << backend << ", " << threads << " threads";
      EXPECT_GT(model.engine->stats().num_long_encodes, 0);
      expect_nothing_left(*model.engine);
    }
  }
}

TEST_F(LongEncodeTest, OthersDecodeMeanwhile) {
  LoadedModel model = load(sliced(config()));
  LLMEngine& engine = *model.engine;
  Answers answers;
  add_decoder(engine, answers);
  add(engine, {.id = "long", .inputs = inputs(3, 60)});
  const int64_t num_runs = engine.executor_stats().num_encoder_runs;
  int num_steps = 0;
  for (; engine.executor_stats().num_encoder_runs == num_runs; ++num_steps) {
    const int64_t generated = engine.stats().num_generated_tokens;
    step(engine, answers);
    EXPECT_EQ(engine.stats().num_generated_tokens, generated + 1);  // the one that decodes, and nobody waits
    ASSERT_LT(num_steps, 45);
  }
  EXPECT_GT(num_steps, 2);
  EXPECT_EQ(engine.stats().num_long_encodes, 1);
}

// The time of the encode is that of its slices together.
TEST_F(LongEncodeTest, ItsTimeIsCounted) {
  LoadedModel model = load(sliced(config()));
  LLMEngine& engine = *model.engine;
  Answers answers;
  add_decoder(engine, answers);
  add(engine, {.id = "long", .inputs = inputs(3, 60), .params = {.max_tokens = 1}});
  const double before = engine.stats().encode_seconds;
  std::vector<RequestOutput> finished;
  for (int i = 0; i < 200 && finished.empty(); ++i) ASSERT_TRUE(engine.step(finished).ok());
  ASSERT_EQ(finished.size(), 1u);
  ASSERT_EQ(finished[0].request_id, "long");
  EXPECT_EQ(engine.stats().num_long_encodes, 1);
  const double all = engine.stats().encode_seconds - before;  // with the little of steps that encode nothing
  EXPECT_GT(finished[0].metrics.encode_s, 0.9 * all);
  EXPECT_LE(finished[0].metrics.encode_s, all + 1e-9);
}

TEST_F(LongEncodeTest, WhoLeavesInTheMidstLeavesNothing) {
  LoadedModel model = load(sliced(config()));
  LLMEngine& engine = *model.engine;
  Answers answers;
  add_decoder(engine, answers);
  for (const char* id : {"a", "b", "c"}) {
    add(engine, {.id = id, .inputs = inputs(3, 60)});
    step(engine, answers);
    EXPECT_TRUE(engine.abort_request(id).ok());
  }
  EXPECT_EQ(engine.stats().num_long_encodes, 3);
  EXPECT_EQ(engine.executor_stats().num_encoder_runs, 1);
  // The blocks of those who left are others' now.
  std::vector<Request> list = requests();
  LoadedModel alone = load(config());
  const Answers expected = run(*alone.engine, list);
  answers = run(engine, list, 1);
  answers.erase("first");
  EXPECT_EQ(answers, expected);
  expect_nothing_left(engine);
}

TEST_F(LongEncodeTest, AnEngineMayGoInTheMidst) {
  LoadedModel model = load(sliced(config()));
  Answers answers;
  add_decoder(*model.engine, answers);
  add(*model.engine, {.id = "long", .inputs = inputs(3, 60)});
  step(*model.engine, answers);
  EXPECT_EQ(model.engine->stats().num_long_encodes, 1);
  EXPECT_EQ(model.engine->executor_stats().num_encoder_runs, 1);
}

TEST_F(LongEncodeTest, SmallPoolsGiveTheSameAnswers) {
  const std::vector<Request> list = requests();
  LoadedModel alone = load(config());
  const Answers expected = run(*alone.engine, list);
  int64_t num_preemptions = 0;
  for (const int32_t blocks : {30, 36, 48}) {
    for (const char* mode : {"recompute", "swap"}) {
      EngineConfig config = sliced(tiny(blocks));
      config.preemption_mode = mode;
      LoadedModel model = load(config);
      EXPECT_EQ(run(*model.engine, list, 1), expected) << blocks << " blocks, " << mode;
      EXPECT_GT(model.engine->stats().num_long_encodes, 0);
      num_preemptions += model.engine->stats().num_preemptions;
      expect_nothing_left(*model.engine);
    }
  }
  EXPECT_GT(num_preemptions, 0);
}

TEST_F(LongEncodeTest, ValuesOfTheFlagAreChecked) {
  for (const char* value : {"", "1 ms", "0", "-1", "nan", "inf", "10001", "sometimes"}) {
    EngineConfig config = this->config();
    config.encode_slice = value;
    const StatusOr<LoadedModel> model = load_engine(config, clock_);
    ASSERT_FALSE(model.ok()) << value;
    EXPECT_THAT(error_message(model.status()), ::testing::HasSubstr(str_cat("--encode-slice ", value, ": expected")));
  }
}

}  // namespace
}  // namespace transept
