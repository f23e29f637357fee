// Proves how a BART-like model reads its checkpoint: what is missing or misshapen is named, a tied table is found under
// every name, and what a layer computes is computed once. (That the numbers are right is shown by the reference's
// answers in tests/, that every tensor matters by perturbation_test.cc.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attention/backends.h"
#include "core/model_config.h"
#include "models/registry.h"
#include "models/run_model_testing.h"
#include "models/tiny_bart_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::RunModel;
using testing::TestFolder;
using testing::TestTensor;
using testing::TinyBart;

class BartLikeTest : public ::testing::Test {
 protected:
  StatusOr<std::unique_ptr<Model>> load(const TinyBart& bart, const std::vector<TestTensor>& tensors) {
    bart.write(dir_, tensors);
    ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::load(dir_.path()));
    ASSIGN_OR_RETURN(std::shared_ptr<WeightMap> weights, WeightMap::open(dir_.path()));
    return load_model(config, weights, {run_.threads(), *attention_});
  }

  TestFolder dir_;
  std::unique_ptr<AttentionBackend> attention_ = std::move(make_attention_backend("reference")).value();
  RunModel run_{*attention_};
};

TEST_F(BartLikeTest, NamesWhatIsMissingAndWhatIsMisshapen) {
  const TinyBart bart;
  std::vector<TestTensor> tensors = bart.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == "final_logits_bias") continue;  // absent: no bias
    std::vector<TestTensor> without = tensors;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    const std::string bare = tensors[i].name.substr(6);
    EXPECT_THAT(error_message(load(bart, without).status()), HasSubstr(bare)) << "missing " << tensors[i].name;
  }
  tensors[3].shape = {bart.d_model / 2, 2};
  EXPECT_THAT(error_message(load(bart, tensors).status()), HasSubstr(tensors[3].name.substr(6)));
}

TEST_F(BartLikeTest, ComputesQkvInOneProductAndCrossKvOnlyWithEncoderInput) {
  const TinyBart bart;
  auto model = load(bart, bart.tensors());
  ASSERT_TRUE(model.ok()) << model.status();
  OpCounters counters;
  run_.logits(**model, &counters);
  const int64_t encoder = 4 * bart.encoder_layers;  // qkv, out, up, down
  const int64_t cross_write = bart.decoder_layers;  // [K V]
  const int64_t decoder = 6 * bart.decoder_layers;  // qkv, out; q, out; up, down
  EXPECT_EQ(counters.num_matmuls, encoder + cross_write + decoder + 1);
}

TEST_F(BartLikeTest, RefusesConfigsOutOfRangeByField) {
  TinyBart bart;
  bart.heads = 3;
  EXPECT_THAT(error_message(load(bart, bart.tensors()).status()), HasSubstr("encoder_attention_heads"));
  bart.heads = 0;
  EXPECT_THAT(error_message(load(bart, TinyBart().tensors()).status()), HasSubstr("encoder_attention_heads"));
}

// The first position of M2M100 stands in the row behind the padding's, wherever that is: published models pad with 1.
TEST_F(BartLikeTest, RefusesAnM2M100WhosePositionsBeginElsewhere) {
  TinyBart().write(dir_);
  auto config = ModelConfig::load(dir_.path());
  ASSERT_TRUE(config.ok()) << config.status();
  config->model_type = "m2m_100";
  config->architectures = {"M2M100ForConditionalGeneration"};
  const auto error = [&] {
    return error_message(
        load_model(*config, std::move(WeightMap::open(dir_.path())).value(), {run_.threads(), *attention_}).status());
  };
  EXPECT_THAT(error(), HasSubstr("encoder.layer_norm"));  // which a BART lacks: the configuration is in order
  config->pad_token_id.reset();
  EXPECT_THAT(error(), HasSubstr("encoder.layer_norm"));
  config->pad_token_id = 0;
  EXPECT_THAT(error(), HasSubstr("config.json: pad_token_id: "));
}

// transformers reads none of these any more, so a checkpoint of today may hold anything there.
TEST_F(BartLikeTest, SwitchesThatContradictTheFamilyChangeNothing) {
  const TinyBart bart;
  auto model = load(bart, bart.tensors());
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<float> expected = run_.logits(**model);
  auto config = ModelConfig::load(dir_.path());
  ASSERT_TRUE(config.ok()) << config.status();
  for (const char* key :
       {"normalize_before", "add_final_layer_norm", "normalize_embedding", "static_position_embeddings"}) {
    config->raw.set(key, std::string(key) != "normalize_embedding");
  }
  auto weights = WeightMap::open(dir_.path());
  ASSERT_TRUE(weights.ok()) << weights.status();
  const std::shared_ptr<WeightMap> shared = std::move(weights).value();
  auto contradicted = load_model(*config, shared, {run_.threads(), *attention_});
  ASSERT_TRUE(contradicted.ok()) << contradicted.status();
  EXPECT_EQ(run_.logits(**contradicted), expected);
}

// Which of a tied table's names a file keeps depends on the tool that wrote it.
TEST_F(BartLikeTest, FindsTheTiedTableUnderEveryName) {
  const TinyBart bart;
  std::vector<TestTensor> tensors = bart.tensors();
  const auto shared = std::find_if(tensors.begin(), tensors.end(),
                                   [](const TestTensor& tensor) { return tensor.name == "model.shared.weight"; });
  ASSERT_NE(shared, tensors.end());
  const TestTensor table = *shared;
  auto model = load(bart, tensors);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<float> expected = run_.logits(**model);
  for (const char* name : {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight",
                           "shared.weight", "decoder.embed_tokens.weight"}) {
    shared->name = name;
    auto renamed = load(bart, tensors);
    ASSERT_TRUE(renamed.ok()) << name << ": " << renamed.status();
    EXPECT_EQ(run_.logits(**renamed), expected) << name;
  }
  shared->name = "model.shared.weight";
  for (const char* name :
       {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}) {
    tensors.push_back(table);
    tensors.back().name = name;
  }
  auto written_out = load(bart, tensors);
  ASSERT_TRUE(written_out.ok()) << written_out.status();
  EXPECT_EQ(run_.logits(**written_out), expected);
}

TEST(Registry, RefusesWhatItDoesNotKnowByName) {
  ModelConfig config;
  config.path = "somewhere";
  ThreadPool threads(1);
  auto attention = make_attention_backend("reference");
  for (const char* name :
       {"LEDForConditionalGeneration", "PegasusXForConditionalGeneration", "NllbMoeForConditionalGeneration"}) {
    config.architectures = {name};
    const auto model = load_model(config, nullptr, {threads, **attention});
    EXPECT_THAT(error_message(model.status()), HasSubstr(name));
    EXPECT_THAT(error_message(model.status()), HasSubstr("bart, mbart"));
  }
  for (const char* model_type : {"pegasus_x", "nllb-moe", "led"}) {
    config.architectures.clear();
    config.model_type = model_type;
    EXPECT_THAT(error_message(load_model(config, nullptr, {threads, **attention}).status()), HasSubstr(model_type));
  }
}

}  // namespace
}  // namespace transept
