// Proves that Qwen2-VL and Qwen2.5-VL compute what transformers does on the checkpoints of tests/models
// (tests/qwen2_vl_family.py made them and the answers), by every attention backend at every instruction level, alone
// and packed; how they read their files; and the order of windows against the reference's steps. That every tensor
// matters: perturbation_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "models/changed_checkpoint_testing.h"
#include "models/patch_windows.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestFolder;

constexpr const char *kPublished = "qwen2-5-vl-bfloat16-sharded", *kNested = "qwen2-5-vl-float16-nested",
                     *kFirst = "qwen2-vl-float32";

class Qwen2Vl : public ::testing::TestWithParam<testing::ReferenceWay> {};

TEST_P(Qwen2Vl, ComputesWhatTransformersDoes) {
  const auto& [folder, backend, isa] = GetParam();
  if (isa > detect_isa()) GTEST_SKIP() << isa_name(isa) << " is not present on this processor";
  testing::expect_reference_answers(folder, backend, isa);
}

INSTANTIATE_TEST_SUITE_P(Ways, Qwen2Vl, testing::reference_ways({kPublished, kNested, kFirst}), testing::name_of_way);

TEST(Qwen2VlMemory, ADryRunGoesByLengthsAlone) {
  for (const char* folder : {kPublished, kNested, kFirst}) testing::expect_dry_runs_suffice(folder);
}

TEST(Qwen2VlShared, GoldensAreReadToTheLastTensor) { testing::expect_shared_goldens_are_read({"qwen2_5_vl"}); }

// ---- Windows

// The reference's steps: pad to whole windows (and one more where a side is whole already), cut, drop what was padded.
struct NaiveWindows {
  std::vector<int32_t> cells, lengths;
};
NaiveWindows naive_windows(int64_t rows, int64_t columns, int64_t side, int64_t patches_a_cell) {
  const int64_t down = (rows + side - rows % side) / side, across = (columns + side - columns % side) / side;
  NaiveWindows out;
  for (int64_t i = 0; i < down; ++i) {
    for (int64_t j = 0; j < across; ++j) {
      int32_t count = 0;
      for (int64_t cell = 0; cell < side * side; ++cell) {
        const int64_t row = i * side + cell / side, column = j * side + cell % side;
        if (row >= rows || column >= columns) continue;
        out.cells.push_back(static_cast<int32_t>(row * columns + column));
        ++count;
      }
      if (count > 0) out.lengths.push_back(static_cast<int32_t>(count * patches_a_cell));
    }
  }
  return out;
}

void expect_the_references(int64_t rows, int64_t columns, int64_t side, int64_t merge) {
  const PatchWindows windows({rows * merge, columns * merge}, merge, side);
  const NaiveWindows naive = naive_windows(rows, columns, side, merge * merge);
  const auto list = [](std::span<const int32_t> values) { return std::vector<int32_t>(values.begin(), values.end()); };
  ASSERT_EQ(list(windows.cells()), naive.cells);
  ASSERT_EQ(list(windows.lengths()), naive.lengths);
  ASSERT_EQ(windows.starts().back(), rows * columns * merge * merge);
  for (size_t i = 0; i < windows.cells().size(); ++i) {
    ASSERT_EQ(windows.places()[static_cast<size_t>(windows.cells()[i])], static_cast<int32_t>(i));
  }
  // Every patch of the picture stands once, where its place among the features says.
  const auto count = static_cast<int64_t>(windows.positions().size()) / 2;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = windows.positions()[static_cast<size_t>(i)],
                  column = windows.positions()[static_cast<size_t>(count + i)];
    const int64_t cell = row / merge * columns + column / merge;
    ASSERT_EQ(windows.patch(i), cell * merge * merge + row % merge * merge + column % merge);
  }
}

TEST(PatchWindows, AreTheReferences) {
  for (int64_t rows = 1; rows <= 9; ++rows) {
    for (int64_t columns = 1; columns <= 9; ++columns) {
      for (int64_t side = 1; side <= 5; ++side) {
        for (int64_t merge = 1; merge <= 3; ++merge) {
          ASSERT_NO_FATAL_FAILURE(expect_the_references(rows, columns, side, merge));
        }
      }
    }
  }
}

TEST(PatchWindows, WithoutASideAreOne) {
  const PatchWindows windows({4, 6}, 2, 0);
  EXPECT_THAT(windows.cells(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(windows.lengths(), ElementsAre(24));
  EXPECT_EQ(windows.longest(), 24);
}

// ---- Files

using Qwen2VlConfig = testing::ChangedCheckpoint;

TEST_F(Qwen2VlConfig, SpecsSayWhatTheFilesDo) {
  const auto loaded = testing::load_folder(testing::checkpoint_path(kPublished), "cpu", threads_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const ModelSpec& spec = loaded->model->spec();
  EXPECT_EQ(spec.family, "qwen2_5_vl");
  EXPECT_EQ(spec.d_model, 24);
  EXPECT_EQ(spec.width_of(Consumers::kSplice), 24);
  EXPECT_EQ(spec.position_axes, 3);
  EXPECT_EQ(spec.consumers(), Consumers::kSplice);
  EXPECT_FALSE(spec.every_layer_crosses());
  EXPECT_EQ(spec.max_decoder_positions, 56);
  EXPECT_EQ(spec.max_item_rows, 4 * spec.max_encoder_positions);
  ASSERT_EQ(spec.kv.size(), 2u);
  EXPECT_EQ(spec.kv[0].kind, KvKind::kSelf);
  EXPECT_EQ(spec.kv[0].num_kv_heads, 2);
  EXPECT_EQ(spec.kv[1].kind, KvKind::kEncoderRows);
  EXPECT_EQ(spec.kv[1].head_dim, 24);
}

TEST_F(Qwen2VlConfig, NumbersOfTheTowerAreChecked) {
  const struct {
    const char *folder, *key, *value, *says;
  } cases[] = {
      {kPublished, "depth", "0", "vision_config: depth: expected a whole number from 1"},
      {kPublished, "depth", "100000", "depth: expected a whole number"},
      {kPublished, "num_heads", "3", "num_heads: 3 heads do not divide hidden_size 16"},
      {kPublished, "num_heads", "8", "num_heads: 8 heads are 2 wide"},
      {kPublished, "window_size", "0", "window_size: expected a whole number from 1"},
      {kPublished, "window_size", "3", "window_size: 3 pixels are less than the 4 of one merged patch"},
      {kPublished, "fullatt_block_indexes", "[-1]", "fullatt_block_indexes: expected whole numbers"},
      {kPublished, "fullatt_block_indexes", "7", "fullatt_block_indexes: expected a list"},
      {kPublished, "out_hidden_size", "16", "out_hidden_size: rows of 16 do not fit among the decoder's of 24"},
      {kPublished, "hidden_act", "\"swoosh\"", "hidden_act: \"swoosh\" is not supported"},
      {kPublished, "patch_size", "[2, 2]", "patch_size: expected a whole number"},
      {kFirst, "mlp_ratio", "0.01", "mlp_ratio: gives a feed-forward of no width"},
      {kFirst, "embed_dim", "17", "num_heads: 2 heads do not divide embed_dim 17"},
      {kFirst, "hidden_size", "20", "hidden_size: rows of 20 do not fit"},
      {kNested, "rope_parameters", R"({"rope_type": "yarn"})", "rope_type: \"yarn\" is not supported, only axial"},
  };
  for (const auto& [folder, key, value, says] : cases) {
    EXPECT_THAT(message_with(folder, "vision_config", key, value), AllOf(HasSubstr("config.json: "), HasSubstr(says)));
  }
  EXPECT_THAT(message_with(kPublished, "", "vision_config", "null"),
              HasSubstr("config.json: vision_config: is no object"));
}

TEST_F(Qwen2VlConfig, NumbersOfTheDecoderAreChecked) {
  const struct {
    const char *folder, *object, *key, *value, *says;
  } cases[] = {
      {kPublished, "", "num_hidden_layers", "0", "config.json: num_hidden_layers: expected"},
      {kPublished, "", "num_attention_heads", "5", "num_attention_heads: 5 heads do not divide hidden_size 24"},
      {kPublished, "", "num_attention_heads", "8", "num_attention_heads: 8 heads are 3 wide"},
      {kPublished, "", "num_key_value_heads", "3", "num_key_value_heads: 3 heads do not divide num_attention_heads 4"},
      {kPublished, "", "head_dim", "8", "head_dim: 8 contradicts hidden_size, which gives 6"},
      {kPublished, "", "rms_norm_eps", "-1", "rms_norm_eps: expected a number"},
      {kPublished, "", "rope_theta", "0", "rope_theta: expected a number"},
      {kPublished, "", "max_position_embeddings", "0", "max_position_embeddings: expected"},
      {kPublished, "", "rope_scaling", "3", "rope_scaling: expected an object"},
      {kPublished, "", "rope_scaling", R"({"type": "mrope", "mrope_section": [1, 1]})",
       "mrope_section: expected three"},
      {kPublished, "", "rope_scaling", R"({"type": "mrope", "mrope_section": [1, 1, 2]})",
       "rope_scaling: mrope_section: the sections sum to 4, and a head of 6 columns has 3 pairs"},
      {kPublished, "", "rope_scaling", R"({"type": "mrope", "mrope_section": [4, 0, -1]})",
       "whole numbers from 0 to 3"},
      {kPublished, "", "rope_scaling", R"({"type": "yarn", "factor": 4})", "rope_type: \"yarn\" is not supported"},
      {kPublished, "", "rope_scaling", R"({"type": "mrope"})", "mrope_section: the sections sum to 64"},
      {kPublished, "", "image_token_id", "40", "image_token_id: expected a whole number from 0 to 39"},
      {kPublished, "", "use_sliding_window", "true", "use_sliding_window: true: layers of sliding windows"},
      {kNested, "text_config", "layer_types", R"(["sliding_attention"])",
       "text_config: layer_types: sliding_attention: layers of sliding windows"},
      {kNested, "text_config", "layer_types", R"(["full_attention", "full_attention"])", "expected a list of 1"},
      {kNested, "text_config", "vocab_size", "0", "text_config: vocab_size"},
  };
  for (const auto& [folder, object, key, value, says] : cases) {
    EXPECT_THAT(message_with(folder, object, key, value), AllOf(HasSubstr("config.json: "), HasSubstr(says)));
  }
}

// A window that no layer has is no reason to refuse.
TEST_F(Qwen2VlConfig, WindowsWithoutEffectAreTaken) {
  Json config = *read_json_object(testing::checkpoint_path(kPublished) + "/config.json");
  EXPECT_EQ(config.find("sliding_window")->as_int(), 64) << "published files name one";
  EXPECT_TRUE(load_with(kPublished, "", "max_window_layers", "2").ok());
  EXPECT_TRUE(load_with(kNested, "text_config", "use_sliding_window", "true").ok()) << "layer_types say what has one";
}

TEST_F(Qwen2VlConfig, MisshapenAndMissingTensorsAreNamed) {
  EXPECT_THAT(message_with(kFirst, "", "intermediate_size", "29"), HasSubstr("model.layers.0.mlp.gate_proj.weight"));
  EXPECT_THAT(message_with(kFirst, "vision_config", "depth", "3"), HasSubstr("visual.blocks.2."));
  EXPECT_THAT(message_with(kNested, "vision_config", "depth", "3"), HasSubstr("model.visual.blocks.2."));
  EXPECT_THAT(message_with(kNested, "text_config", "num_key_value_heads", "2"),
              HasSubstr("model.language_model.layers.0.self_attn.k_proj.weight"));
  EXPECT_THAT(message_with(kPublished, "vision_config", "temporal_patch_size", "1"), HasSubstr("temporal_patch_size"));
  EXPECT_THAT(message_with(kPublished, "", "tie_word_embeddings", "false"), HasSubstr("lm_head.weight"));
}

}  // namespace
}  // namespace transept
