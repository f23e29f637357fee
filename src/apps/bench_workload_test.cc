// What `transept bench` asks of a model: lengths as given, inputs all different, the same again by the same seed.
#include "apps/bench_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/engine_flags.h"
#include "base/source_dir_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

Flags flags_of(const std::vector<std::string>& arguments) {
  std::vector<FlagSpec> table = bench_workload_flags();
  for (FlagSpec& flag : engine_flags()) table.push_back(std::move(flag));
  return Flags::parse(table, arguments).value();
}

BenchWorkload throughput_of(const std::vector<std::string>& arguments) {
  return read_bench_workload(flags_of(arguments), false).value();
}

std::string refusal(const std::vector<std::string>& arguments, bool is_latency) {
  return error_message(read_bench_workload(flags_of(arguments), is_latency).status());
}

class BenchInputsTest : public ::testing::Test {
 protected:
  LoadedModel load(const std::string& name) {
    EngineConfig config;
    config.model = source_dir() + "/tests/models/" + name;
    config.threads = 1;
    return load_engine(config, clock_).value();
  }

  SteadyClock clock_;
};

TEST(BenchWorkload, IsALoopWhereFewerAreInFlightThanAreSent) {
  const BenchWorkload loop = throughput_of({"--num-prompts", "9", "--max-concurrency", "3", "--output-len", "4-7"});
  EXPECT_TRUE(loop.is_closed_loop());
  EXPECT_EQ(loop.max_in_flight, 3);
  EXPECT_EQ(loop.min_output_len, 4);
  EXPECT_EQ(loop.max_output_len, 7);
  EXPECT_FALSE(throughput_of({"--num-prompts", "9"}).is_closed_loop());
  EXPECT_EQ(throughput_of({"--num-prompts", "9"}).max_in_flight, 9);
}

TEST(BenchWorkload, RefusesWhatIsOfTheOtherKindByName) {
  EXPECT_THAT(refusal({"--max-concurrency", "2"}, true), HasSubstr("--max-concurrency belongs to bench throughput"));
  EXPECT_THAT(refusal({"--batch-size", "2"}, false), HasSubstr("--batch-size belongs to bench latency"));
  EXPECT_THAT(refusal({"--output-len", "1"}, true), HasSubstr("--output-len 1: expected N or LO-HI, from 2"));
  EXPECT_THAT(refusal({"--output-len", "5-4"}, true), HasSubstr("--output-len 5-4: expected N or LO-HI"));
}

TEST_F(BenchInputsTest, AreAllDifferentAndOfTheLengthsAsked) {
  const LoadedModel model = load("bart-float32");
  BenchWorkload work = throughput_of({"--num-prompts", "40", "--input-len", "6", "--output-len", "3-5"});
  BenchInputs inputs = BenchInputs::create(work, model, 7).value(), again = BenchInputs::create(work, model, 7).value();
  std::set<std::vector<int32_t>> seen;
  std::set<int32_t> lengths;
  for (int call = 0; call < 2; ++call) {
    const std::vector<BenchInputs::Request> requests = inputs.draw().value(), same = again.draw().value();
    ASSERT_EQ(requests.size(), 40u);
    for (size_t i = 0; i < requests.size(); ++i) {
      const std::vector<int32_t>& ids = requests[i].inputs.encoder_token_ids();
      EXPECT_EQ(ids.size(), 6u);
      EXPECT_TRUE(seen.insert(ids).second) << "call " << call << ", request " << i << " was there before";
      EXPECT_EQ(ids, same[i].inputs.encoder_token_ids());
      EXPECT_TRUE(requests[i].params.ignore_eos);
      lengths.insert(requests[i].params.max_tokens);
    }
  }
  EXPECT_EQ(lengths, (std::set<int32_t>{3, 4, 5}));
  work.input_len = model.info.max_encoder_len + 1;
  EXPECT_THAT(error_message(BenchInputs::create(work, model, 7).status()), HasSubstr("--input-len"));
}

TEST_F(BenchInputsTest, OfATranscribingModelAreWindowsOfNoiseBehindItsWholePrompt) {
  const LoadedModel model = load("whisper-transcribes");
  const BenchWorkload work = throughput_of({"--num-prompts", "2", "--output-len", "3"});
  BenchInputs inputs = BenchInputs::create(work, model, 7).value();
  EXPECT_EQ(inputs.input_len(), model.info.max_encoder_len);
  const std::vector<BenchInputs::Request> requests = inputs.draw().value();
  ASSERT_NE(requests[0].inputs.items[0].features, nullptr);
  EXPECT_FALSE(*requests[0].inputs.items[0].features == *requests[1].inputs.items[0].features);
  const SpeechTokens& speech = *model.speech_tokens;
  EXPECT_EQ(requests[0].inputs.prompt_token_ids,
            (std::vector<int32_t>{model.prompts->decoder_start_token_id(), speech.languages.front().token_id,
                                  speech.transcribe.value(), speech.no_timestamps.value()}));
}

TEST_F(BenchInputsTest, OfAModelThatReadsPicturesAreNoiseOfTheSizeAsked) {
  const LoadedModel model = load("donut-float16");
  BenchWorkload work = throughput_of({"--num-prompts", "2", "--output-len", "3", "--image-size", "20x9"});
  EXPECT_EQ(work.image_width, 20);
  EXPECT_EQ(work.image_height, 9);
  BenchInputs inputs = BenchInputs::create(work, model, 7).value(), again = BenchInputs::create(work, model, 7).value();
  const std::vector<BenchInputs::Request> requests = inputs.draw().value(), same = again.draw().value();
  const EncoderFeatures& first = *requests[0].inputs.items[0].features;
  EXPECT_EQ(first.image.width, 20);
  EXPECT_EQ(first.image.height, 9);
  EXPECT_EQ(inputs.input_len(), first.num_positions);
  EXPECT_FALSE(first == *requests[1].inputs.items[0].features);
  EXPECT_EQ(first, *same[0].inputs.items[0].features);
  EXPECT_EQ(requests[0].inputs.prompt_token_ids, std::vector<int32_t>{model.prompts->decoder_start_token_id()});
  work.image_prompt = "a text";
  EXPECT_THAT(error_message(BenchInputs::create(work, model, 7).status()), HasSubstr("tokenizer"));
  for (const char* size : {"20", "20x", "x9", "0x9", "20x-1", "20x9x3", "99999x1", "a"}) {
    EXPECT_THAT(refusal({"--image-size", size}, true), HasSubstr(str_cat("--image-size ", size, ": expected WxH")));
  }
}

}  // namespace
}  // namespace transept
