// Proves over a real (tiny, random) model that what `dump encoder` writes is what a step of the engine encodes, bit for
// bit, whatever the encoder's products and its attention are kept in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/tiny_model_testing.h"
#include "engine/weight_storage.h"

namespace transept {
namespace {

using testing::Request;

struct Storage {
  std::string_view quantization, kv_cache_dtype;
};

class EncoderOutputTest : public testing::TinyModelTest, public ::testing::WithParamInterface<Storage> {
 protected:
  // As wide as int8 asks for.
  EncoderOutputTest() { testing::TinyBart{.d_model = kLeastInt8Width, .heads = 4, .ffn = 256}.write(dir_); }

  EngineConfig config() const {
    EngineConfig config = TinyModelTest::config();
    config.quantization = GetParam().quantization;
    config.kv_cache_dtype = GetParam().kv_cache_dtype;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Types, EncoderOutputTest,
                         ::testing::Values(Storage{"none", "float32"}, Storage{"none", "int8"},
                                           Storage{"int8", "float32"}, Storage{"int8", "int8"}),
                         [](const auto& storage) {
                           return str_cat(storage.param.quantization, "_", storage.param.kv_cache_dtype);
                         });

TEST_P(EncoderOutputTest, ADumpIsWhatAStepEncodes) {
  Request request;
  request.id = "r";
  request.inputs = inputs(1, 37);
  request.params.max_tokens = 2;
  LoadedModel model = load(config());
  add(*model.engine, request);
  testing::Answers answers;
  step(*model.engine, answers);
  const std::span<const float> captured = model.runner->last_encoder_output();
  ASSERT_EQ(captured.size(), 37 * static_cast<size_t>(kLeastInt8Width));
  LoadedModel another = load(config());
  EXPECT_TRUE(another.runner->last_encoder_output().empty());
  const auto dumped = another.runner->run_encoder(request.inputs.encoder_content());
  ASSERT_TRUE(dumped.ok()) << dumped.status();
  EXPECT_THAT(*dumped, ::testing::ElementsAreArray(captured.begin(), captured.end()));
}

TEST_F(EncoderOutputTest, RoundingChangesWhatIsEncoded) {
  const auto encoded = [&](std::string quantization) {
    EngineConfig config = TinyModelTest::config();
    config.quantization = std::move(quantization);
    return load(config).runner->run_encoder(inputs(1, 37).encoder_content()).value();
  };
  EXPECT_NE(encoded("none"), encoded("int8")) << "then the test above proves little";
}

}  // namespace
}  // namespace transept
