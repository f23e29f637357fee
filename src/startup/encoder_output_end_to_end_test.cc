// Proves over a real (tiny, random) model that a request gets its encoder output as its step encodes it (what `dump
// encoder` writes), bit for bit: whatever products and attention are kept in, beside others, and in slices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/backends.h"
#include "models/registry.h"
#include "models/run_model_testing.h"
#include "startup/tiny_model_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using testing::Request;

struct Storage {
  std::string_view quantization = "none", kv_cache_dtype = "float32";
};

class EncoderOutputTest : public testing::TinyModelTest, public ::testing::WithParamInterface<Storage> {
 protected:
  // As wide as int8 asks for.
  EncoderOutputTest() { testing::TinyBart{.d_model = kLeastInt8Width, .heads = 4, .ffn = 256}.write(dir_); }

  EngineConfig config(const Storage& storage = Storage()) const {
    EngineConfig config = TinyModelTest::config();
    config.quantization = storage.quantization;
    config.kv_cache_dtype = storage.kv_cache_dtype;
    return config;
  }

  static Request request(const std::string& id, int32_t which, int32_t num_encoder) {
    Request request;
    request.id = id;
    request.inputs = inputs(which, num_encoder);
    request.params.max_tokens = 2;
    request.params.capture_encoder_output = id == "captured";
    return request;
  }

  // Of the request "captured", once all have ended.
  static std::vector<float> captured(LLMEngine& engine, const std::vector<Request>& list) {
    for (const Request& request : list) add(engine, request);
    return captured(engine);
  }
  static std::vector<float> captured(LLMEngine& engine) {
    std::vector<RequestOutput> outputs;
    while (engine.has_unfinished_requests()) EXPECT_TRUE(engine.step(outputs).ok());
    std::vector<float> values;
    for (const RequestOutput& output : outputs) {
      if (output.request_id == "captured") {
        values = output.encoder_output;
      } else {
        EXPECT_THAT(output.encoder_output, IsEmpty());
      }
    }
    return values;
  }
};

INSTANTIATE_TEST_SUITE_P(Types, EncoderOutputTest,
                         ::testing::Values(Storage{"none", "float32"}, Storage{"none", "int8"},
                                           Storage{"int8", "float32"}, Storage{"int8", "int8"}),
                         [](const auto& storage) {
                           return str_cat(storage.param.quantization, "_", storage.param.kv_cache_dtype);
                         });

TEST_P(EncoderOutputTest, IsTheSameAloneBesideOthersAndInSlices) {
  const Request wanted = request("captured", 1, 37);
  const std::vector<float> alone = captured(*load(config(GetParam())).engine, {wanted});
  ASSERT_EQ(alone.size(), 37 * static_cast<size_t>(kLeastInt8Width));
  const LoadedModel beside = load(config(GetParam()));
  EXPECT_THAT(captured(*beside.engine, {request("a", 2, 11), wanted, request("b", 3, 5)}), ElementsAreArray(alone));

  EngineConfig sliced = config(GetParam());
  sliced.encode_slice = "0.001";
  const LoadedModel model = load(sliced);
  Request decoding = request("decoding", 2, 5);
  decoding.params.max_tokens = 50;
  decoding.params.ignore_eos = true;
  add(*model.engine, decoding);
  std::vector<RequestOutput> outputs;
  EXPECT_TRUE(model.engine->step(outputs).ok());
  EXPECT_THAT(captured(*model.engine, {wanted}), ElementsAreArray(alone));
  EXPECT_EQ(model.engine->stats().num_long_encodes, 1);
}

TEST_F(EncoderOutputTest, IsWhatTheModelGivesWithoutAnEngine) {
  const auto attention = make_attention_backend("auto").value();
  const ModelConfig model_config = ModelConfig::load(dir_.path()).value();
  std::shared_ptr<WeightMap> weights = WeightMap::open(dir_.path()).value();
  testing::RunModel runner(*attention, parse_isa("auto").value());
  const auto model = load_model(model_config, weights, {PackOptions(runner.threads()), *attention}).value();
  const Request wanted = request("captured", 1, 37);
  const auto direct = runner.run(*model, {{wanted.inputs.items.front(), {2}}});
  EXPECT_THAT(captured(*load(config()).engine, {wanted}), ElementsAreArray(direct[0].encoder));
}

// A request that wants the rows encodes itself.
TEST_F(EncoderOutputTest, AnInputThatWasEncodedBeforeHasItToo) {
  const LoadedModel model = load(config());
  const std::vector<float> alone = captured(*load(config()).engine, {request("captured", 1, 37)});
  EXPECT_FALSE(alone.empty());
  EXPECT_THAT(captured(*model.engine, {request("a", 1, 37), request("captured", 1, 37)}), ElementsAreArray(alone));
}

TEST_F(EncoderOutputTest, RoundingChangesWhatIsEncoded) {
  const auto encoded = [&](std::string_view quantization) {
    return captured(*load(config({quantization, "float32"})).engine, {request("captured", 1, 37)});
  };
  EXPECT_NE(encoded("none"), encoded("int8")) << "then the tests above prove little";
}

}  // namespace
}  // namespace transept
