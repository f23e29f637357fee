// Proves that Mllama computes what transformers does on the checkpoints of tests/models (tests/mllama_family.py made
// them and the answers), by every attention backend at every instruction level, alone and packed; how it reads its
// files; and the angles of scaled positions. That every tensor matters: perturbation_test.cc. What tokens see:
// multimodal/mllama_rules_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/changed_checkpoint_testing.h"
#include "models/llama3_rope.h"
#include "ops/rope.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

// The third has the masks of Meta's code (mllama_strict_mask).
constexpr const char *kByClass = "mllama-float32", *kPublished = "mllama-bfloat16-sharded",
                     *kStrict = "mllama-strict-float16";

class Mllama : public ::testing::TestWithParam<testing::ReferenceWay> {};

TEST_P(Mllama, ComputesWhatTransformersDoes) {
  const auto& [folder, backend, isa] = GetParam();
  if (isa > detect_isa()) GTEST_SKIP() << isa_name(isa) << " is not present on this processor";
  testing::expect_reference_answers(folder, backend, isa);
}

INSTANTIATE_TEST_SUITE_P(Ways, Mllama, testing::reference_ways({kByClass, kPublished, kStrict}), testing::name_of_way);

TEST(MllamaMemory, ADryRunGoesByLengthsAlone) {
  for (const char* folder : {kByClass, kPublished, kStrict}) testing::expect_dry_runs_suffice(folder);
}

TEST(MllamaShared, GoldensAreReadToTheLastTensor) { testing::expect_shared_goldens_are_read({"mllama"}); }

// Angles that transformers' _compute_llama3_parameters has for Llama 3.2's factors and heads of 8 and 128 columns.
TEST(Llama3Rope, IsTransformers) {
  std::vector<float> tiny = rope_frequencies(8, 500000);
  scale_llama3({.factor = 8, .low = 1, .high = 4, .old_positions = 64}, tiny);
  EXPECT_THAT(tiny,
              ElementsAre(FloatEq(1.0f), FloatEq(0.00470075384f), FloatEq(0.000176776681f), FloatEq(6.64786967e-06f)));
  std::vector<float> wide = rope_frequencies(128, 500000);
  scale_llama3({}, wide);
  EXPECT_FLOAT_EQ(wide[0], 1.0f);
  EXPECT_FLOAT_EQ(wide[28], 0.00321144611f);
  EXPECT_FLOAT_EQ(wide[31], 0.00085675146f);
  EXPECT_FLOAT_EQ(wide[34], 0.000178507791f);
  EXPECT_FLOAT_EQ(wide[63], 3.06892588e-07f);
}

// ---- Files

using MllamaConfig = testing::ChangedCheckpoint;

TEST_F(MllamaConfig, SpecsSayWhatTheFilesDo) {
  const auto loaded = testing::load_folder(testing::checkpoint_path(kByClass), "cpu", threads_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const ModelSpec& spec = loaded->model->spec();
  EXPECT_EQ(spec.family, "mllama");
  EXPECT_EQ(spec.d_model, 24);
  EXPECT_EQ(spec.vocab_size, 40);
  EXPECT_EQ(spec.prompt_vocab(), 48);
  EXPECT_EQ(spec.consumers(), Consumers::kCross);
  EXPECT_FALSE(spec.every_layer_crosses());
  EXPECT_EQ(spec.max_decoder_positions, 64);
  EXPECT_EQ(spec.max_encoder_positions, 8 * 20);
  EXPECT_EQ(spec.max_item_rows, 32);
  ASSERT_EQ(spec.kv.size(), 2u);
  EXPECT_EQ(spec.kv[0].kind, KvKind::kSelf);
  EXPECT_THAT(spec.kv[0].layers, ElementsAre(0, 2));
  EXPECT_EQ(spec.kv[1].kind, KvKind::kCross);
  EXPECT_THAT(spec.kv[1].layers, ElementsAre(1, 3));
  EXPECT_EQ(spec.kv[1].num_kv_heads, 2);
}

TEST_F(MllamaConfig, NumbersOfTheTowerAreChecked) {
  const struct {
    const char *key, *value, *says;
  } cases[] = {
      {"num_hidden_layers", "0", "vision_config: num_hidden_layers: expected a whole number from 1"},
      {"num_global_layers", "-1", "num_global_layers: expected a whole number from 0"},
      {"attention_heads", "3", "attention_heads: 3 heads do not divide hidden_size 16"},
      {"norm_eps", "-1", "norm_eps: expected a number"},
      {"hidden_act", "\"swoosh\"", "hidden_act: \"swoosh\" is not supported"},
      {"intermediate_layers_indices", "[0, 3]", "intermediate_layers_indices: 3 is no layer of the 3"},
      {"intermediate_layers_indices", "[]", "intermediate_layers_indices: is empty"},
      {"intermediate_layers_indices", "[-1, 1]", "intermediate_layers_indices: expected"},
      {"vision_output_dim", "64", "vision_output_dim: 64 is not hidden_size 16 times 3"},
      {"image_size", "12", "size: 8 contradicts"},
      {"max_num_tiles", "2", "max_image_tiles: 4 contradicts"},
  };
  for (const auto& [key, value, says] : cases) {
    EXPECT_THAT(message_with(kByClass, "vision_config", key, value),
                AllOf(HasSubstr("config.json: "), HasSubstr(says)));
  }
  EXPECT_THAT(message_with(kByClass, "", "vision_config", "null"),
              HasSubstr("config.json: vision_config: is no object"));
}

TEST_F(MllamaConfig, NumbersOfTheDecoderAreChecked) {
  const struct {
    const char *object, *key, *value, *says;
  } cases[] = {
      {"text_config", "num_hidden_layers", "0", "text_config: num_hidden_layers: expected"},
      {"text_config", "num_attention_heads", "5", "num_attention_heads: 5 heads do not divide hidden_size 24"},
      {"text_config", "num_attention_heads", "8", "num_attention_heads: 8 heads are 3 wide"},
      {"text_config", "num_key_value_heads", "3", "num_key_value_heads: 3 heads do not divide num_attention_heads 4"},
      {"text_config", "head_dim", "8", "head_dim: 8 contradicts hidden_size, which gives 6"},
      {"text_config", "rms_norm_eps", "2", "rms_norm_eps: expected a number"},
      {"text_config", "max_position_embeddings", "0", "max_position_embeddings: expected"},
      {"text_config", "hidden_act", "\"swoosh\"", "hidden_act: \"swoosh\" is not supported"},
      {"text_config", "cross_attention_layers", "[1, 4]", "cross_attention_layers: 4 is no layer of the 4"},
      {"text_config", "cross_attention_layers", "[-1]", "cross_attention_layers: expected"},
      {"text_config", "cross_attention_layers", "[]", "cross_attention_layers: is empty"},
      {"text_config", "cross_attention_layers", "[0, 1]", "cross_attention_layers: 0: cross-attention in the first"},
      {"text_config", "cross_attention_layers", "null", "cross_attention_layers: 8 is no layer of the 4"},
      {"text_config", "rope_parameters", "3", "rope_parameters: expected an object"},
      {"text_config", "rope_parameters", R"({"rope_type": "yarn"})", "rope_type: \"yarn\" is not supported"},
      {"text_config", "rope_parameters", R"({"rope_type": "llama3"})", "rope_parameters: factor"},
      {"text_config", "rope_parameters",
       R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4})",
       "high_freq_factor: is not above low_freq_factor"},
      {"text_config", "rope_parameters",
       R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 0, "high_freq_factor": 4})", "low_freq_factor"},
      {"text_config", "rope_parameters",
       R"({"rope_type": "llama3", "factor": 0.5, "low_freq_factor": 1, "high_freq_factor": 4})", "factor: expected"},
      {"text_config", "rope_theta", "0", "rope_theta: expected a number"},
      {"", "image_token_index", "48", "image_token_index: 48 is outside the 48 ids"},
      {"", "text_config", "7", "text_config"},
  };
  for (const auto& [object, key, value, says] : cases) {
    EXPECT_THAT(message_with(kByClass, object, key, value), AllOf(HasSubstr("config.json: "), HasSubstr(says)));
  }
}

TEST_F(MllamaConfig, MisshapenAndMissingTensorsAreNamed) {
  EXPECT_THAT(message_with(kByClass, "text_config", "intermediate_size", "29"),
              HasSubstr("model.language_model.layers.0.mlp.gate_proj.weight"));
  EXPECT_THAT(message_with(kByClass, "text_config", "cross_attention_layers", "[2, 3]"),
              HasSubstr("layers.1.self_attn"));
  EXPECT_THAT(message_with(kByClass, "vision_config", "num_hidden_layers", "4"),
              HasSubstr("model.vision_model.transformer.layers.3."));
  EXPECT_THAT(message_with(kPublished, "vision_config", "num_global_layers", "2"),
              HasSubstr("vision_model.global_transformer.layers.1."));
  EXPECT_THAT(message_with(kPublished, "text_config", "vocab_size", "41"),
              HasSubstr("language_model.model.embed_tokens"));
  EXPECT_THAT(message_with(kPublished, "vision_config", "supported_aspect_ratios", "[[1, 1], [1, 2], [2, 1], [1, 1]]"),
              HasSubstr("tile_embedding.weight"));
}

}  // namespace
}  // namespace transept
