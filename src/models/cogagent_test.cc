// Proves that CogAgent computes what our own reference does on the checkpoints of tests/models
// (tests/cogagent_family.py, which is written after the published code), by every attention backend at every
// instruction level, alone and packed; how it reads its files; and which rows experts compute. That every tensor
// matters: perturbation_test.cc. Prompts: multimodal/cogagent_rules_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "layers/row_runs.h"
#include "models/changed_checkpoint_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char *kPlain = "cogagent-float32", *kPublished = "cogagent-bfloat16-sharded";

class CogAgent : public ::testing::TestWithParam<testing::ReferenceWay> {};

TEST_P(CogAgent, ComputesWhatTheReferenceDoes) {
  const auto& [folder, backend, isa] = GetParam();
  if (isa > detect_isa()) GTEST_SKIP() << isa_name(isa) << " is not present on this processor";
  testing::expect_reference_answers(folder, backend, isa);
}

INSTANTIATE_TEST_SUITE_P(Ways, CogAgent, testing::reference_ways({kPlain, kPublished}), testing::name_of_way);

TEST(CogAgentMemory, ADryRunGoesByLengthsAlone) {
  for (const char* folder : {kPlain, kPublished}) testing::expect_dry_runs_suffice(folder);
}

// ---- Rows of experts

TEST(RowRuns, AreAsLongAsRowsAreAlike) {
  const auto runs_of = [](std::vector<uint8_t> kinds, int64_t num_rows) {
    std::vector<std::tuple<int64_t, int64_t, bool>> runs;
    for_each_run(kinds, num_rows,
                 [&](int64_t begin, int64_t end, bool is_experts) { runs.emplace_back(begin, end, is_experts); });
    return runs;
  };
  EXPECT_THAT(runs_of({}, 3), ElementsAre(std::tuple(0, 3, false)));
  EXPECT_THAT(runs_of({0, 2, 1, 1, 0, 1}, 6), ElementsAre(std::tuple(0, 2, false), std::tuple(2, 4, true),
                                                          std::tuple(4, 5, false), std::tuple(5, 6, true)));
  EXPECT_THAT(runs_of({1}, 1), ElementsAre(std::tuple(0, 1, true)));
}

// ---- Files

using CogAgentConfig = testing::ChangedCheckpoint;

TEST_F(CogAgentConfig, SpecsSayWhatTheFilesDo) {
  const auto loaded = testing::load_folder(testing::checkpoint_path(kPlain), "cpu", threads_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const ModelSpec& spec = loaded->model->spec();
  EXPECT_EQ(spec.family, "cogagent");
  EXPECT_EQ(spec.d_model, 24);
  EXPECT_EQ(spec.width_of(Consumers::kCross), 16);
  EXPECT_EQ(spec.width_of(Consumers::kSplice), 24);
  EXPECT_EQ(spec.consumers(), Consumers::kCross | Consumers::kSplice);
  EXPECT_TRUE(spec.every_layer_crosses());
  EXPECT_EQ(spec.position_axes, 1);
  EXPECT_EQ(spec.max_decoder_positions, 96);
  EXPECT_EQ(spec.max_encoder_positions, 6 + 9);
  EXPECT_EQ(spec.max_item_rows, 10);
  ASSERT_EQ(spec.kv.size(), 3u);
  EXPECT_EQ(spec.kv[0].kind, KvKind::kSelf);
  EXPECT_EQ(spec.kv[0].head_dim, 6);
  EXPECT_EQ(spec.kv[1].kind, KvKind::kCross);
  EXPECT_EQ(spec.kv[1].head_dim, 4);
  EXPECT_THAT(spec.kv[1].layers, ElementsAre(0, 1));
  EXPECT_EQ(spec.kv[2].kind, KvKind::kEncoderRows);
}

// The published file names no tower of the large picture: its sizes are the class's.
TEST_F(CogAgentConfig, TheLargeTowerIsTheClassesWhereNoFieldNamesIt) {
  EXPECT_THAT(message_with(kPlain, "", "cross_vision_config", "null"),
              HasSubstr("cross_image_size: 12 pixels are less than a patch of 14"));
  EXPECT_THAT(message_with(kPlain, "cross_vision_config", "head_width", "null"),
              HasSubstr("head_width: heads of 64 do not divide cross_hidden_size 16"));
}

TEST_F(CogAgentConfig, NumbersAreChecked) {
  const struct {
    const char *object, *key, *value, *says;
  } cases[] = {
      {"", "hidden_size", "0", "hidden_size: expected a whole number from 1"},
      {"", "num_attention_heads", "5", "num_attention_heads: 5 heads do not divide hidden_size 24"},
      {"", "num_attention_heads", "8", "num_attention_heads: 8 heads are 3 wide"},
      {"", "num_hidden_layers", "-1", "num_hidden_layers: expected"},
      {"", "max_position_embeddings", "0", "max_position_embeddings: expected"},
      {"", "rms_norm_eps", "2", "rms_norm_eps: expected a number"},
      {"", "hidden_act", "\"swoosh\"", "hidden_act: \"swoosh\" is not supported"},
      {"", "cross_compute_hidden_size", "8", "cross_compute_hidden_size: 8 is not cross_hidden_size 16"},
      {"", "cross_hidden_size", "0", "cross_hidden_size: expected"},
      {"", "tie_word_embeddings", "true", "tie_word_embeddings: true is not supported"},
      {"", "template_version", "\"talk\"", "template_version: \"talk\" is none of base, chat, chat_old and vqa"},
      {"", "cross_image_size", "3", "cross_image_size: 3 pixels are less than a patch of 4"},
      {"", "cross_image_size", "30000", "cross_image_size: 30000 pixels are 56250000 patches of 4, more than the"},
      {"", "cross_image_size", "8", "cross_image_size: 8 is the image_size of vision_config"},
      {"", "vision_config", "7", "vision_config: is no object"},
      {"", "cross_vision_config", "7", "cross_vision_config: is no object"},
      {"vision_config", "in_channels", "1", "vision_config: in_channels: 1 is not supported"},
      {"vision_config", "image_size", "2", "vision_config: image_size: 2 pixels are less than a patch of 4"},
      {"vision_config", "num_heads", "5", "num_heads: 5 heads do not divide hidden_size 12"},
      {"vision_config", "num_positions", "6", "num_positions: 6 is not 5"},
      {"vision_config", "layer_norm_eps", "-1", "layer_norm_eps: expected a number"},
      {"vision_config", "hidden_act", "\"swoosh\"", "hidden_act: \"swoosh\" is not supported"},
      {"cross_vision_config", "in_channels", "4", "cross_vision_config: in_channels: 4 is not supported"},
      {"cross_vision_config", "image_size", "16", "image_size: 16 contradicts cross_image_size 12"},
      {"cross_vision_config", "hidden_size", "8", "hidden_size: 8 contradicts cross_hidden_size 16"},
      {"cross_vision_config", "layers", "1", "layers: expected a whole number from 2"},
      {"cross_vision_config", "head_width", "5", "head_width: heads of 5 do not divide cross_hidden_size 16"},
      {"cross_vision_config", "head_width", "2", "head_width: 2: rows and columns rotate multiples of 4"},
      {"cross_vision_config", "mlp_ratio", "0.01", "mlp_ratio: gives a feed-forward of no width"},
      {"cross_vision_config", "pt_hw_seq_len", "0", "pt_hw_seq_len: expected a number"},
  };
  for (const auto& [object, key, value, says] : cases) {
    EXPECT_THAT(message_with(kPlain, object, key, value), AllOf(HasSubstr("config.json: "), HasSubstr(says)));
  }
}

TEST_F(CogAgentConfig, MisshapenAndMissingTensorsAreNamed) {
  EXPECT_THAT(message_with(kPlain, "", "intermediate_size", "29"), HasSubstr("linear_proj.gate_proj.weight"));
  EXPECT_THAT(message_with(kPlain, "", "vocab_size", "421"), HasSubstr("embed_tokens"));
  EXPECT_THAT(message_with(kPlain, "", "num_hidden_layers", "3"), HasSubstr("model.layers.2."));
  EXPECT_THAT(message_with(kPlain, "vision_config", "num_hidden_layers", "3"),
              HasSubstr("model.vision.transformer.layers.2."));
  EXPECT_THAT(message_with(kPlain, "cross_vision_config", "layers", "4"),
              HasSubstr("model.cross_vision.vit.model.blocks.2."));
  EXPECT_THAT(message_with(kPlain, "cross_vision_config", "mlp_ratio", "3"), HasSubstr("blocks.0.mlp.w"));
  EXPECT_THAT(message_with(kPlain, "", "cross_image_size", "16"), HasSubstr("model.cross_vision.vit.model.pos_embed"));
}

// What no row comes from need not be there, and is not read if it is.
TEST_F(CogAgentConfig, WhatTheClassHasAndNoLayerReadsIsLeftOut) {
  const auto loaded = testing::load_folder(testing::checkpoint_path(kPublished), "cpu", threads_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(loaded->weights->contains("model.cross_vision.vit.model.head.weight"));
  EXPECT_THAT(loaded->weights->unread(), IsEmpty());
}

}  // namespace
}  // namespace transept
