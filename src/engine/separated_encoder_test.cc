// Proves that a model in two parts (decision 32) answers as one: the engine's plans are executed by an encoder's rank,
// which returns rows, and a decoder's rank, which gets them in its plan. All answers are the whole model's to the bit,
// for every family, and neither rank has memory for the other's work.
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "attention/backends.h"
#include "base/sanitized_testing.h"
#include "engine/family_requests_testing.h"
#include "engine/mosaic_model_testing.h"
#include "rank/checking_device_testing.h"
#include "rank/separated_executor_testing.h"

namespace transept {
namespace {

using testing::Answers;
using testing::Circumstances;
using testing::SeparatedExecutor;

class SeparatedEncoder : public testing::FamilyRequests {
 protected:
  std::unique_ptr<SeparatedExecutor> make_parts(const Circumstances& setup,
                                                const DeviceKind& device = cpu_device_kind(),
                                                ModelPart decoders = ModelPart::kDecoder) const {
    ModelRunnerOptions options = options_of(setup);
    options.device = &device;
    auto executor = SeparatedExecutor::create(config_, options, decoders);
    CHECK(executor.ok(), error_message(executor.status()));
    return std::move(executor).value();
  }
};

TEST_P(SeparatedEncoder, AnswersAreTheWholeModels) {
  const Circumstances setups[] = {
      {.name = "cpu"},
      {.name = "reference", .backend = "reference"},
      {.name = "int8", .weights = kInt8Format, .kv = DType::kInt8},
      {.name = "bfloat16", .weights = kBFloat16Format, .kv = DType::kFloat16},
  };
  // A whole window of audio takes sanitizers a minute; int8 comes with the test below.
  for (const Circumstances& setup : std::span(setups).first(kSanitized ? 1 : std::size(setups))) {
    if (is_long_for(setup)) continue;
    SCOPED_TRACE(setup.name);
    const std::unique_ptr<LLMEngine> apart = make_engine(setup, make_parts(setup)), whole = make_engine(setup);
    const Answers answers = run(*apart);
    EXPECT_EQ(answers, run(*whole));
    EXPECT_EQ(answers.size(), 6u);
    EXPECT_FALSE(answers.at("5").encoder.empty()) << "injected rows can be captured, too";
    EXPECT_EQ(apart->executor_stats().num_encoder_runs, whole->executor_stats().num_encoder_runs);
    EXPECT_EQ(apart->executor_stats().num_cross_kv_writes, whole->executor_stats().num_cross_kv_writes);
  }
}

// A whole model may take the rows of some items and encode others, in one step.
TEST_P(SeparatedEncoder, SomeRowsAreTakenAndSomeAreMade) {
  const Circumstances setup{.name = "mixed", .weights = kInt8Format};
  const std::unique_ptr<LLMEngine> whole = make_engine(setup);
  auto parts = make_parts(setup, cpu_device_kind(), ModelPart::kWhole);
  const Executor& executor = *parts;
  const std::unique_ptr<LLMEngine> mixed = make_engine(setup, std::move(parts));
  EXPECT_EQ(run(*mixed), run(*whole));
  EXPECT_EQ(executor.stats().num_encoder_runs, whole->executor_stats().num_encoder_runs);
}

// Rows come from the host's memory to a device's.
TEST_P(SeparatedEncoder, AnswersOnADeviceAreTheSame) {
  const Circumstances setup{.name = "device"};
  const testing::CheckingDeviceKind checking;
  const std::unique_ptr<LLMEngine> apart = make_engine(setup, make_parts(setup, checking)), whole = make_engine(setup);
  EXPECT_EQ(run(*apart), run(*whole));
}

TEST_P(SeparatedEncoder, RanksSayWhatTheyHave) {
  // Without a limit of its own a decoder's rank has what its KV pool holds, which an encoder's cannot know.
  Circumstances setup;
  const ExecutorInfo usual = make_engine(setup)->executor().info();
  setup.max_model_len = std::min(24, std::max(usual.max_encoder_len, usual.max_decoder_len));
  const std::unique_ptr<SeparatedExecutor> parts = make_parts(setup);
  const std::unique_ptr<LLMEngine> engine = make_engine(setup);
  const ExecutorInfo &whole = engine->executor().info(), &encoder = parts->encoder_info(), &decoder = parts->info();
  EXPECT_EQ(whole.spec.part, ModelPart::kWhole);
  EXPECT_EQ(encoder.spec.part, ModelPart::kEncoder);
  EXPECT_EQ(decoder.spec.part, ModelPart::kDecoder);
  EXPECT_TRUE(encoder.tables.empty());
  EXPECT_EQ(encoder.num_device_blocks + encoder.num_host_blocks, 0);
  EXPECT_EQ(encoder.block_bytes, 0u);
  EXPECT_EQ(decoder.num_device_blocks, whole.num_device_blocks);
  EXPECT_EQ(decoder.block_bytes, whole.block_bytes);
  for (const ExecutorInfo* part : {&encoder, &decoder}) {
    EXPECT_EQ(part->max_encoder_len, whole.max_encoder_len);
    EXPECT_EQ(part->max_decoder_len, whole.max_decoder_len);
    EXPECT_EQ(part->max_num_encoder_tokens, whole.max_num_encoder_tokens);
    EXPECT_LE(part->step_bytes, whole.step_bytes);
    EXPECT_LT(part->packed_layers.size(), whole.packed_layers.size());
  }
  EXPECT_EQ(encoder.packed_layers.size() + decoder.packed_layers.size(), whole.packed_layers.size());
}

// Two encoders, whose rows are spliced or crossed: both are the encoder's part, and no table is.
TEST(SeparatedEncoders, OfTwoKindsAreOnePart) {
  const testing::Mosaic mosaic(testing::Mosaic::kDim);
  ThreadPool threads(1);
  const auto attention = std::move(make_attention_backend("reference")).value();
  const auto spec_of = [&](ModelPart part) {
    std::shared_ptr<WeightMap> weights = WeightMap::open(mosaic.folder()).value();
    return mosaic.make(weights, {threads, *attention, part}).value()->spec();
  };
  const ModelSpec whole = spec_of(ModelPart::kWhole), encoders = spec_of(ModelPart::kEncoder),
                  decoder = spec_of(ModelPart::kDecoder);
  EXPECT_EQ(whole.kv.size(), 5u);
  EXPECT_EQ(decoder.kv.size(), 5u);
  EXPECT_TRUE(encoders.kv.empty());
  for (const ModelSpec& spec : {whole, encoders, decoder}) {
    EXPECT_EQ(spec.consumers(), Consumers::kCross | Consumers::kSplice);
  }
  EXPECT_EQ(encoders.num_encoder_layers, whole.num_encoder_layers);
  EXPECT_EQ(decoder.num_encoder_layers, 0);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, SeparatedEncoder, ::testing::ValuesIn(testing::in_turn(testing::folders(), 1)),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
