// An encoder's rank returns rows, refuses what it cannot do before it does anything, and has memory for encodes alone.
// That its rows are a whole model's: engine/separated_encoder_test.cc.
#include "rank/encoder_model_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "models/tiny_bart_testing.h"
#include "rank/model_runner.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestFolder;
using testing::TinyBart;

class EncoderRank : public ::testing::Test {
 protected:
  EncoderRank() {
    TinyBart{.encoder_layers = 2, .decoder_layers = 2, .positions = 64}.write(dir_);
    config_ = ModelConfig::load(dir_.path()).value();
    options_.num_threads = 2;
    options_.isa = detect_isa();
    options_.max_num_seqs = 8;
    options_.max_num_encoder_tokens = 100;
    options_.kv_cache_memory = 4 << 20;
  }

  StatusOr<std::unique_ptr<EncoderModelRunner>> make_encoder() {
    return EncoderModelRunner::create(config_, WeightMap::open(dir_.path()).value(), options_);
  }
  std::unique_ptr<EncoderDecoderModelRunner> make_runner(ModelPart part) {
    options_.part = part;
    return EncoderDecoderModelRunner::create(config_, WeightMap::open(dir_.path()).value(), options_).value();
  }

  static void add_item(StepPlan& plan, uint64_t group, int32_t length) {
    PlannedEncode& encode = plan.scheduled.encodes.push();
    encode.group_id = GroupId(group);
    for (int32_t i = 0; i < length; ++i) encode.token_ids.push_back((7 * i + length) % 40);
    encode.num_positions = encode.num_rows = length;
    encode.consumers = Consumers::kCross;
  }
  static StepOutput run(EncoderModelRunner& encoder, const StepPlan& plan) {
    StepOutput output;
    EXPECT_TRUE(encoder.submit(plan).ok());
    EXPECT_TRUE(encoder.collect(plan.step, output).ok());
    return output;
  }

  TestFolder dir_;
  ModelConfig config_;
  ModelRunnerOptions options_;
};

TEST_F(EncoderRank, ReturnsTheRowsThatAreAsked) {
  const auto encoder = make_encoder().value();
  StepPlan all, one;
  for (const uint64_t group : {1, 2, 3}) add_item(all, group, 5 * static_cast<int32_t>(group));
  all.step = 7;
  all.encoder_captures = {GroupId(3), GroupId(1)};
  const StepOutput output = run(*encoder, all);
  EXPECT_EQ(output.step, 7u);
  ASSERT_EQ(output.captured_encodes.size(), 2u);
  EXPECT_EQ(output.captured_encodes[0].group_id, GroupId(1));
  EXPECT_EQ(output.captured_encodes[0].values.size(), 5u * 16);
  EXPECT_EQ(output.captured_encodes[1].group_id, GroupId(3));
  EXPECT_GT(output.num_encode_tasks, 0);
  EXPECT_EQ(encoder->stats().num_encoder_runs, 3);
  add_item(one, 3, 15);
  one.encoder_captures = {GroupId(3)};
  EXPECT_EQ(run(*encoder, one).captured_encodes[0].values, output.captured_encodes[1].values);
  EXPECT_THAT(run(*encoder, StepPlan()).captured_encodes, IsEmpty()) << "nothing of the step before stays";
}

TEST_F(EncoderRank, TheLargestEncodesFitItsMemory) {
  const auto encoder = make_encoder().value();
  const ExecutorInfo& info = encoder->info();
  EXPECT_EQ(info.spec.part, ModelPart::kEncoder);
  EXPECT_EQ(info.max_encoder_len, 64);
  StepPlan longest, most;
  add_item(longest, 1, 64);
  add_item(longest, 2, 36);
  for (uint64_t i = 0; i < 8; ++i) add_item(most, i, i < 4 ? 13 : 12);
  run(*encoder, longest);
  run(*encoder, most);
  EXPECT_EQ(encoder->stats().num_arena_overflows, 0);
}

TEST_F(EncoderRank, TheBudgetHoldsTheLongestItem) {
  options_.max_num_encoder_tokens = 10;
  EXPECT_EQ(make_encoder().value()->info().max_num_encoder_tokens, 64);
}

// Each part has less than the whole: an encoder's nothing of the decoder's rows, a decoder's nothing of what encodes.
TEST_F(EncoderRank, StepMemoryIsThatOfThePart) {
  TinyBart{.ffn = 64}.write(dir_);  // four times as wide as the model, as usual
  config_ = ModelConfig::load(dir_.path()).value();
  options_.max_num_seqs = 32;
  options_.max_num_encoder_tokens = 2000;
  options_.max_num_batched_tokens = 16;
  const uint64_t whole = make_runner(ModelPart::kWhole)->info().step_bytes;
  const uint64_t decoder = make_runner(ModelPart::kDecoder)->info().step_bytes;
  const uint64_t encoder = make_encoder().value()->info().step_bytes;
  EXPECT_LE(encoder, whole);
  EXPECT_LT(decoder, whole * 3 / 4) << "K and V of the longest input, and no layer of the encoder";
  options_.max_num_encoder_tokens = 64;
  options_.max_num_batched_tokens = 2000;
  EXPECT_LT(make_encoder().value()->info().step_bytes, make_runner(ModelPart::kWhole)->info().step_bytes / 4);
}

TEST_F(EncoderRank, RefusesWhatItCannotDo) {
  const auto encoder = make_encoder().value();
  StepPlan decodes;
  decodes.scheduled.groups.push().seq_data.push().token_ids = {1};
  EXPECT_THAT(error_message(encoder->submit(decodes)), HasSubstr("groups"));
  StepPlan writes;
  add_item(writes, 1, 4);
  writes.scheduled.encodes[0].writes = Consumers::kCross;
  EXPECT_THAT(error_message(encoder->submit(writes)), HasSubstr("encode writes"));
  StepPlan large;
  add_item(large, 1, 64);
  add_item(large, 2, 37);
  EXPECT_THAT(error_message(encoder->submit(large)), HasSubstr("encodes: 101 rows: expected 0 to 100"));
  StepPlan many;
  for (uint64_t i = 0; i < 9; ++i) add_item(many, i, 1);
  EXPECT_THAT(error_message(encoder->submit(many)), HasSubstr("encodes: 9 items: expected 0 to 8"));
  StepPlan sound;
  add_item(sound, 1, 4);
  sound.encoder_captures = {GroupId(1)};
  EXPECT_EQ(run(*encoder, sound).captured_encodes.size(), 1u) << "what was refused has left nothing";
}

TEST_F(EncoderRank, ADecodersRankRefusesToEncode) {
  const auto decoder = make_runner(ModelPart::kDecoder);
  StepPlan plan;
  add_item(plan, 1, 4);
  plan.scheduled.encodes[0].writes = Consumers::kCross;
  plan.scheduled.encodes[0].group_tables.push() = {0};
  StepOutput output;
  const Status status = decoder->execute(plan, output);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(decoder->stats().num_cross_kv_writes, 0);
}

TEST_F(EncoderRank, AMissingLengthIsRefused) {
  options_.max_model_len = 65;
  EXPECT_THAT(error_message(make_encoder().status()), HasSubstr("--max-model-len 65: the model has 64 positions"));
}

}  // namespace
}  // namespace transept
