// Proves that Florence-2 computes what transformers does in double precision on the checkpoints of tests/models
// (tests/florence_family.py made them and the answers), by every attention backend at every instruction level, alone
// and packed; and how its files are read. That every tensor matters: perturbation_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/changed_checkpoint_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LoadedModel;
using testing::RunModel;
using testing::TestFolder;
using testing::TestTensor;

constexpr const char *kNative = "florence2-float16", *kOriginal = "florence2-bfloat16-original";

class Florence2 : public ::testing::TestWithParam<testing::ReferenceWay> {};

TEST_P(Florence2, ComputesWhatTransformersDoes) {
  const auto& [folder, backend, isa] = GetParam();
  if (isa > detect_isa()) GTEST_SKIP() << isa_name(isa) << " is not present on this processor";
  testing::expect_reference_answers(folder, backend, isa);
}

// An item of a picture alone: the rows that stand among ids, whatever they are packed with.
TEST_P(Florence2, APictureAloneGivesTheTowersRows) {
  const auto& [folder, backend, isa] = GetParam();
  if (isa > detect_isa()) GTEST_SKIP() << isa_name(isa) << " is not present on this processor";
  ThreadPool threads(2);
  const auto loaded = testing::load_folder(testing::checkpoint_path(folder), backend, threads);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  RunModel run(*loaded->attention, isa, 2);
  std::vector<testing::ModelRequest> requests;
  const auto answers = testing::read_answers(folder);
  for (const testing::ReferenceAnswer& answer : answers) {
    requests.push_back(answer.request);
    requests.back().content.token_ids.clear();
  }
  const std::vector<RunModel::Output> packed = run.run(*loaded->model, requests);
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_LT(testing::relative_error(packed[i].encoder, answers[i].tower), 5e-6);
    EXPECT_EQ(run.run(*loaded->model, {requests[i]})[0].encoder, packed[i].encoder);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Florence2, testing::reference_ways({kNative, kOriginal}), testing::name_of_way);

TEST(Florence2Memory, ADryRunGoesByLengthsAlone) {
  for (const char* folder : {kNative, kOriginal}) testing::expect_dry_runs_suffice(folder);
}

TEST(Florence2Files, ReadsTheSharedGoldens) { testing::expect_shared_goldens_are_read({"florence2"}); }

using Florence2Config = testing::ChangedCheckpoint;

TEST_F(Florence2Config, SpecsSayWhatTheFilesDo) {
  const auto native = testing::load_folder(testing::checkpoint_path(kNative), "cpu", threads_);
  ASSERT_TRUE(native.ok()) << native.status();
  const ModelSpec& spec = native->model->spec();
  EXPECT_EQ(spec.family, "florence2");
  EXPECT_EQ(spec.d_model, 16);
  EXPECT_EQ(spec.vocab_size, 40);
  EXPECT_EQ(spec.encoder_vocab(), 40);
  EXPECT_EQ(spec.media_token_id, 36);
  EXPECT_EQ(spec.max_encoder_positions, 24);
  EXPECT_EQ(spec.max_decoder_positions, 24);
  EXPECT_EQ(spec.num_encoder_layers, 2);
  EXPECT_EQ(spec.num_decoder_layers, 1);
  EXPECT_THAT(spec.modalities, ElementsAre("image"));
  EXPECT_EQ(spec.consumers(), Consumers::kCross);
  // The picture with the most has 4 x 5 rows and their mean: of 8 x 10 rows before the last convolution.
  EXPECT_EQ(spec.max_item_rows, 80);
  const auto rows = [&](std::vector<int64_t> shape) { return spec.media_rows(shape); };
  EXPECT_EQ(rows({3, 22, 16}), 1 + 4 * 3);
  EXPECT_EQ(rows({3, 1, 1}), 2);
  EXPECT_EQ(rows({3, 36, 36}), 37);
  EXPECT_EQ(rows({3, 37, 36}), 0) << "a row of the last map has no position";
  EXPECT_EQ(rows({3, 0, 16}), 0);
  EXPECT_EQ(rows({3, int64_t{1} << 40, 16}), 0);
  EXPECT_EQ(rows({1, 22, 16}), 0);
  EXPECT_EQ(rows({22, 16}), 0);
  const auto original = testing::load_folder(testing::checkpoint_path(kOriginal), "cpu", threads_);
  ASSERT_TRUE(original.ok()) << original.status();
  EXPECT_EQ(original->model->spec().media_token_id, 40) << "an id behind the table";
  EXPECT_EQ(original->model->spec().encoder_vocab(), 41);
  EXPECT_EQ(original->model->spec().vocab_size, 40);
}

TEST_F(Florence2Config, TowersRefuseByField) {
  for (const char* key : {"depths", "patch_size", "patch_stride", "embed_dim", "num_heads", "num_groups"}) {
    for (const char* value : {"0", "[]", "[3]", "[3, 0]", "[3, 1.5]", "[3, \"3\"]", "[3, 1e12]", "[3, 3, 3]"}) {
      EXPECT_THAT(message_with(kNative, "vision_config", key, value),
                  AllOf(HasSubstr("config.json: vision_config: "), HasSubstr(key)))
          << key << value;
    }
  }
  for (const char* key : {"window_size", "projection_dim", "max_temporal_embeddings", "max_position_embeddings"}) {
    for (const char* value : {"0", "\"many\"", "1e12", "2.5"}) {
      EXPECT_THAT(message_with(kNative, "vision_config", key, value),
                  HasSubstr(str_cat("config.json: vision_config: ", key, ": ")));
    }
  }
  EXPECT_THAT(message_with(kNative, "vision_config", "patch_padding", "[2, 2]"),
              HasSubstr("patch_padding: 2 is not less than"));
  EXPECT_THAT(message_with(kNative, "vision_config", "patch_padding", "[2, -1]"), HasSubstr("patch_padding: "));
  EXPECT_THAT(message_with(kNative, "vision_config", "patch_prenorm", "[true, true]"),
              HasSubstr("patch_prenorm: a norm of the"));
  EXPECT_THAT(message_with(kNative, "vision_config", "patch_prenorm", "[false]"), HasSubstr("patch_prenorm: 1 values"));
  EXPECT_THAT(message_with(kNative, "vision_config", "patch_prenorm", "[false, 1]"),
              HasSubstr("patch_prenorm: expected"));
  EXPECT_THAT(message_with(kNative, "vision_config", "num_heads", "[2, 4]"),
              HasSubstr("num_heads: 4 do not divide the 18"));
  EXPECT_THAT(message_with(kNative, "vision_config", "num_groups", "[5, 2]"),
              HasSubstr("num_groups: 5 do not divide the 12"));
  EXPECT_THAT(message_with(kNative, "vision_config", "mlp_ratio", "0"), HasSubstr("mlp_ratio: gives"));
  EXPECT_THAT(message_with(kNative, "vision_config", "in_channels", "1"), HasSubstr("in_channels: 1 is not supported"));
  EXPECT_THAT(message_with(kNative, "vision_config", "activation_function", "\"wavy\""), HasSubstr("\"wavy\""));
  EXPECT_THAT(message_with(kNative, "vision_config", "projection_dim", "12"),
              HasSubstr("projection_dim: rows of 12 do not"));
  EXPECT_THAT(message_with(kNative, "", "vision_config", "3"),
              HasSubstr("config.json: vision_config: expected an object"));
  // A size that the weights contradict is named by the tensor.
  EXPECT_THAT(message_with(kNative, "vision_config", "depths", "[2, 2]"), HasSubstr("vision_tower.blocks.0.1."));
  EXPECT_THAT(message_with(kNative, "vision_config", "max_position_embeddings", "7"),
              HasSubstr("row_embeddings.weight"));
  EXPECT_THAT(message_with(kNative, "vision_config", "max_temporal_embeddings", "4"), HasSubstr("pos_idx_to_embed"));
  EXPECT_THAT(message_with(kNative, "vision_config", "patch_size", "[7, 3]"), HasSubstr("convs.0.conv.weight"));
}

TEST_F(Florence2Config, OriginalTowersRefuseWhatIsInNoPublishedFile) {
  const auto message = [&](const char* key, const char* value) {
    return message_with(kOriginal, "vision_config", key, value);
  };
  EXPECT_THAT(message("dim_embed", "[8]"), HasSubstr("vision_config: dim_embed: "));
  EXPECT_THAT(message("image_pos_embed", "null"), HasSubstr("vision_config: image_pos_embed: expected an object"));
  EXPECT_THAT(message("image_pos_embed", R"({"type": "none"})"), HasSubstr("image_pos_embed: type: \"none\""));
  EXPECT_THAT(message("image_pos_embed", R"({"type": "learned_abs_2d", "max_pos_embeddings": 0})"),
              HasSubstr("image_pos_embed: max_pos_embeddings: "));
  EXPECT_THAT(message("visual_temporal_embedding", R"({"type": "LEARNED"})"), HasSubstr("type: \"LEARNED\""));
  EXPECT_THAT(message("image_feature_source", R"(["last_frame"])"), HasSubstr("image_feature_source: "));
  EXPECT_THAT(message("image_feature_source", R"(["temporal_avg_pool", "spatial_avg_pool"])"),
              HasSubstr("image_feature_source: "));
  EXPECT_THAT(message("conv_at_ffn", "false"), HasSubstr("conv_at_ffn: false is not supported"));
}

TEST_F(Florence2Config, TextsRefuseByField) {
  for (const char* key : {"d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_ffn_dim",
                          "max_position_embeddings", "vocab_size"}) {
    for (const char* value : {"0", "\"many\"", "1e12", "2.5"}) {
      EXPECT_THAT(message_with(kNative, "text_config", key, value),
                  HasSubstr(str_cat("config.json: text_config: ", key, ": ")));
    }
  }
  EXPECT_THAT(message_with(kNative, "text_config", "vocab_size", "39"),
              HasSubstr("text_config: vocab_size: 39 contradicts the 40"));
  EXPECT_THAT(message_with(kNative, "", "image_token_id", "40"),
              HasSubstr("image_token_id: id 40 is outside the vocabulary"));
  EXPECT_THAT(message_with(kNative, "", "image_token_id", "-1"), HasSubstr("config.json: image_token_id: "));
  EXPECT_THAT(message_with(kNative, "text_config", "tie_word_embeddings", "false"),
              HasSubstr("text_config: tie_word_embeddings"));
  EXPECT_THAT(message_with(kNative, "", "tie_word_embeddings", "false"), HasSubstr("lm_head.weight"));
  EXPECT_THAT(message_with(kNative, "", "text_config", "null"), HasSubstr("config.json: text_config: is missing"));
}

TEST_F(Florence2Config, MissingAndMisshapenTensorsAreNamed) {
  const auto message = [&](const char* folder, std::string_view name, bool is_misshapen) {
    std::vector<TestTensor> tensors = tensors_of(folder);
    const auto place = std::ranges::find(tensors, name, &TestTensor::name);
    EXPECT_NE(place, tensors.end()) << name;
    if (place == tensors.end()) return std::string();
    if (is_misshapen) {
      place->shape.push_back(1);
    } else {
      tensors.erase(place);
    }
    return error_message(load_tensors(folder, tensors).status());
  };
  const std::pair<const char*, const char*> names[] = {
      {kNative, "model.vision_tower.convs.1.norm.bias"},
      {kNative, "model.vision_tower.convs.0.conv.weight"},
      {kNative, "model.vision_tower.blocks.1.1.spatial_block.conv2.weight"},
      {kNative, "model.vision_tower.blocks.0.0.spatial_block.window_attn.qkv.weight"},
      {kNative, "model.vision_tower.blocks.0.0.channel_block.channel_attn.proj.bias"},
      {kNative, "model.vision_tower.blocks.1.0.channel_block.norm2.weight"},
      {kNative, "model.multi_modal_projector.image_projection.weight"},
      {kNative, "model.multi_modal_projector.image_position_embed.column_embeddings.weight"},
      {kNative, "model.language_model.encoder.layernorm_embedding.weight"},
      {kNative, "model.language_model.shared.weight"},
      {kOriginal, "image_projection"},
      {kOriginal, "image_pos_embed.row_embeddings.weight"},
      {kOriginal, "vision_tower.convs.0.proj.bias"},
      {kOriginal, "vision_tower.blocks.1.0.channel_block.ffn.fn.net.fc1.weight"},
      {kOriginal, "language_model.model.decoder.layers.1.fc2.weight"}};
  for (const auto& [folder, name] : names) {
    const std::string shown = std::string(name).substr(std::string_view(name).starts_with("model.") ? 6 : 0);
    const size_t text = shown.find("language_model.");
    const std::string asked = text == 0 ? shown.substr(std::string_view("language_model.").size()) : shown;
    const std::string bare = asked.starts_with("model.") ? asked.substr(6) : asked;
    EXPECT_THAT(message(folder, name, false), AllOf(HasSubstr(bare), HasSubstr("missing")));
    EXPECT_THAT(message(folder, name, true), AllOf(HasSubstr(bare), HasSubstr("expected")));
  }
}

// The table of moments is a constant: a file may leave it out.
TEST_F(Florence2Config, MomentsAreComputedWhereAFileHasNone) {
  std::vector<TestTensor> tensors = tensors_of(kNative);
  const auto moments = std::ranges::find(tensors, "model.multi_modal_projector.visual_temporal_embed.pos_idx_to_embed",
                                         &TestTensor::name);
  std::vector<float> table(3 * 18);
  for (size_t i = 1; i < 18; i += 2) table[i] = 1;
  moments->dtype = "F32";
  moments->data = testing::bytes_of(table);
  const std::vector<float> stored = logits_of(load_tensors(kNative, tensors));
  tensors.erase(moments);
  EXPECT_EQ(logits_of(load_tensors(kNative, tensors)), stored);
}

}  // namespace
}  // namespace transept
