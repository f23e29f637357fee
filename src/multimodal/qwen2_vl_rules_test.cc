// Prompts of Qwen2-VL: places of pictures, their positions (against what transformers' get_rope_index says,
// tests/qwen2_vl_family.py), and what is refused; and what the files of a folder say of pictures.
#include "multimodal/qwen2_vl_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/folder_testing.h"
#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "multimodal/multimodal_testing.h"
#include "multimodal/qwen2_vl_pictures.h"
#include "multimodal/qwen2_vl_positions.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::json_of;
using testing::TestFolder;

constexpr int32_t kImage = 8, kVideo = 9, kVocab = 20;

ModelConfig config_of(const std::string& dir, const std::string& fields = "", const std::string& tower = "") {
  ModelConfig config;
  config.path = dir;
  config.model_type = "qwen2_5_vl";
  config.vocab_size = kVocab;
  config.raw = json_of(str_cat(
      R"({"image_token_id": 8, "video_token_id": 9, "max_position_embeddings": 100)", fields,
      R"(, "vision_config": {"patch_size": 2, "spatial_merge_size": 2, "temporal_patch_size": 1)", tower, "}}"));
  return config;
}

EncoderItem picture(int32_t rows, int32_t columns) {
  auto features = std::make_shared<EncoderFeatures>();
  features->modality = Modality::kImage;
  features->extras = {1, 2 * rows, 2 * columns};
  features->num_positions = rows * columns;
  EncoderItem item({}, std::move(features));
  item.consumers = Consumers::kSplice;
  return item;
}

// A prompt of ids, or of a text that "is tokenised" to them, beside these pictures.
StatusOr<EncoderDecoderInputs> fill(std::vector<int32_t> ids, std::vector<EncoderItem> items, bool is_text = true,
                                    std::optional<int64_t> truncate = {}) {
  InputContext context;
  context.family = "qwen2_5_vl";
  context.vocab_size = kVocab;
  context.eos = {7};
  const auto rules = make_qwen2_vl_rules(config_of("nowhere"), context);
  EncoderDecoderPrompt prompt;
  prompt.decoder.emplace();
  prompt.decoder_beside_media = true;
  prompt.decoder_param = "prompt";
  if (is_text) {
    prompt.decoder->content = TextPrompt{"text"};
  } else {
    prompt.decoder->content = TokensPrompt{ids};
  }
  PromptOptions options;
  options.truncate_prompt_tokens = truncate;
  EncoderDecoderInputs inputs;
  inputs.items = std::move(items);
  const auto tokenize = [&](const std::string&, bool) { return StatusOr<std::vector<int32_t>>(ids); };
  RETURN_IF_ERROR(rules->fill_decoder(prompt, options, tokenize, inputs));
  return inputs;
}

std::string refusal(std::vector<int32_t> ids, std::vector<EncoderItem> items, bool is_text = true) {
  const auto inputs = fill(std::move(ids), std::move(items), is_text);
  EXPECT_FALSE(inputs.ok());
  if (inputs.ok()) return "";
  EXPECT_EQ(error_param(inputs.status()), "prompt");
  return error_message(inputs.status());
}

TEST(Qwen2VlRules, ExpandEachPlaceToItsPicturesRows) {
  const auto inputs = fill({5, kImage, 6, kImage, 7}, {picture(1, 2), picture(2, 2)});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT(inputs->prompt_token_ids, ElementsAre(5, 8, 8, 6, 8, 8, 8, 8, 7)) << "an end token stays";
  EXPECT_EQ(inputs->items[0].splice_offset, 1);
  EXPECT_EQ(inputs->items[1].splice_offset, 4);
  EXPECT_EQ(inputs->prompt, "text") << "the text is the short one";
  EXPECT_THAT(inputs->layout.prompt_positions, ElementsAre(0, 1, 1, 3, 4, 4, 4, 4, 6,  //
                                                           0, 1, 1, 3, 4, 4, 5, 5, 6,  //
                                                           0, 1, 2, 3, 4, 5, 4, 5, 6));
  EXPECT_EQ(inputs->layout.position_delta, -2);
}

TEST(Qwen2VlRules, TextAloneIsPlain) {
  for (const bool is_text : {true, false}) {
    const auto inputs = fill({5, 6, 7}, {}, is_text);
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    EXPECT_THAT(inputs->prompt_token_ids, ElementsAre(5, 6, 7));
    EXPECT_EQ(inputs->layout, DecoderLayout());
  }
  EXPECT_THAT(fill({5, 6, 7}, {}, true, 2)->prompt_token_ids, ElementsAre(6, 7)) << "the last are kept";
}

// As results show them, and clients send them again.
TEST(Qwen2VlRules, IdsMayBeExpandedAlready) {
  const auto inputs = fill({5, 8, 8, 8, 8, 6, 8}, {picture(2, 2), picture(1, 3)}, false);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT(inputs->prompt_token_ids, ElementsAre(5, 8, 8, 8, 8, 6, 8, 8, 8));
  EXPECT_THAT(refusal({8, 8, 8}, {picture(2, 2)}, false), AllOf(HasSubstr("4 rows"), HasSubstr("3 <|image_pad|>")));
}

TEST(Qwen2VlRules, RefuseWhatDoesNotFit) {
  EXPECT_THAT(refusal({8, 5, 8}, {picture(1, 1)}), AllOf(HasSubstr("has 2 <|image_pad|>"), HasSubstr("1 picture:")));
  EXPECT_THAT(refusal({5}, {picture(1, 1), picture(1, 1)}), AllOf(HasSubstr("has 0"), HasSubstr("2 pictures")));
  EXPECT_THAT(refusal({8}, {}), AllOf(HasSubstr("has 1 <|image_pad|>"), HasSubstr("0 pictures")));
  EXPECT_THAT(refusal({8, 8}, {picture(1, 1), picture(1, 1)}), HasSubstr("stand next to each other"));
  EXPECT_THAT(refusal({5, kVideo}, {}), HasSubstr("videos are not supported"));
  EXPECT_THAT(refusal({5, kVocab}, {}), HasSubstr("outside the vocabulary"));
  EXPECT_THAT(refusal({}, {}), HasSubstr("no tokens"));
  // Over a handle nothing else asks: the encoder's side is not read.
  EXPECT_EQ(error_param(fill({5, 8, 6}, {picture(1, 1)}, true, 2).status()), "truncate_prompt_tokens");
}

TEST(Qwen2VlPositions, AreTransformers) {
  const auto text = read_file(source_dir() + "/tests/models/qwen2-vl-float32/positions.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const Json prompts = json_of(*text);
  size_t count = 0;
  for (const Json& prompt : prompts.as_array()) {
    std::vector<PlacedPicture> pictures;
    const Json::Array& texts = prompt.find("texts")->as_array();
    auto token = static_cast<int32_t>(texts[0].as_int());
    for (const Json& sides : prompt.find("pictures")->as_array()) {
      pictures.push_back({token, static_cast<int32_t>(sides.as_array()[0].as_int()),
                          static_cast<int32_t>(sides.as_array()[1].as_int())});
      token += pictures.back().num_tokens() + static_cast<int32_t>(texts[pictures.size()].as_int());
    }
    std::vector<int32_t> expected;
    for (const Json& axis : prompt.find("positions")->as_array()) {
      for (const Json& position : axis.as_array()) expected.push_back(static_cast<int32_t>(position.as_int()));
    }
    const DecoderLayout layout = qwen2_vl_layout(token, pictures);
    EXPECT_EQ(layout.prompt_positions, expected) << prompt.dump();
    EXPECT_EQ(layout.position_delta, prompt.find("delta")->as_int()) << prompt.dump();
    ++count;
  }
  EXPECT_GE(count, 4u);
}

// ---- Files

class Qwen2VlFiles : public ::testing::Test {
 protected:
  void write(const std::string& fields) {
    dir_.write("preprocessor_config.json",
               str_cat(R"({"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 2, "temporal_patch_size": 1)",
                       fields, "}"));
  }
  std::string error(const std::string& fields = "", const std::string& tower = "") {
    const auto pictures = read_qwen2_vl_pictures(config_of(dir_.path(), fields, tower));
    EXPECT_FALSE(pictures.ok());
    return error_message(pictures.status());
  }
  TestFolder dir_;
};

TEST_F(Qwen2VlFiles, LimitPicturesByPixelsAndPositions) {
  // A low picture of 1 to 200 is the largest: sides of 4 and 4 * sqrt(200 * 256 / 16) pixels.
  write(R"(, "min_pixels": 16, "max_pixels": 256)");
  const auto pictures = read_qwen2_vl_pictures(config_of(dir_.path()));
  ASSERT_TRUE(pictures.ok()) << pictures.status();
  EXPECT_GE(pictures->max_patches, 4 * 226 / 4);
  EXPECT_LE(pictures->max_patches, 4 * 232 / 4);
  EXPECT_EQ(pictures->max_patches % 4, 0);
  write(R"(, "min_pixels": 64, "max_pixels": 2560)");
  EXPECT_EQ(read_qwen2_vl_pictures(config_of(dir_.path()))->max_positions(), 100) << "what fits in a prompt";
}

TEST_F(Qwen2VlFiles, MustAgree) {
  write(R"(, "merge_size": 1)");
  EXPECT_THAT(error(), AllOf(HasSubstr("preprocessor_config.json: merge_size: 1 contradicts"),
                             HasSubstr("config.json: vision_config: spatial_merge_size: 2")));
  write(R"(, "min_pixels": 500, "max_pixels": 256)");
  EXPECT_THAT(error(), HasSubstr("min_pixels: 500 pixels at least, and 256 at most"));
}

TEST_F(Qwen2VlFiles, AreCheckedNumberByNumber) {
  EXPECT_THAT(error("", R"(, "in_channels": 4)"), HasSubstr("vision_config: in_channels: 4 is not supported"));
  EXPECT_THAT(error("", R"(, "temporal_patch_size": 0)"), HasSubstr("expected a whole number from 1"));
  EXPECT_THAT(error(R"(, "text_config": {"max_position_embeddings": 0})"),
              HasSubstr("text_config: max_position_embeddings"));
  const auto tokens = read_qwen2_vl_tokens(config_of("dir", R"(, "eos": 1)"));
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->image, kImage);
  ModelConfig small = config_of("dir");
  small.vocab_size = 8;
  EXPECT_THAT(error_message(read_qwen2_vl_tokens(small).status()), HasSubstr("dir/config.json: image_token_id"));
  ModelConfig same = config_of("dir");
  same.raw.set("video_token_id", 8);
  EXPECT_THAT(error_message(read_qwen2_vl_tokens(same).status()),
              HasSubstr("video_token_id: 8 is image_token_id, too"));
}

// Shapes and grids come from other processes, too.
TEST_F(Qwen2VlFiles, CountRowsOfGridsThatBelongToTheirShape) {
  const auto rows = make_qwen2_vl_image_rows(config_of(dir_.path()));
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto count = [&](std::vector<int64_t> shape, std::vector<int32_t> extras) {
    return (*rows)->count(shape, extras);
  };
  EXPECT_EQ(count({24, 12}, {1, 4, 6})->num_positions, 6);
  EXPECT_EQ(count({24, 12}, {1, 4, 6})->num_rows, 24);
  for (const std::vector<int32_t>& grid : std::vector<std::vector<int32_t>>{{},
                                                                            {1, 4},
                                                                            {1, 4, 6, 0},
                                                                            {2, 4, 3},
                                                                            {1, 3, 8},
                                                                            {1, 8, 3},
                                                                            {1, 4, 4},
                                                                            {1, -4, -6},
                                                                            {0, 4, 6},
                                                                            {1, 0, 6},
                                                                            {1, 65536, 65536}}) {
    EXPECT_THAT(std::string(count({24, 12}, grid).status().message()), HasSubstr("multiples of 2")) << grid.size();
  }
  EXPECT_THAT(std::string(count({24, 13}, {1, 4, 6}).status().message()), HasSubstr("patches of 12 values"));
  EXPECT_FALSE(count({3, 8, 8}, {1, 4, 6}).ok());
  EXPECT_FALSE(count({0, 12}, {1, 0, 0}).ok());
  EXPECT_THAT(std::string(count({404, 12}, {1, 2, 202}).status().message()), HasSubstr("more than the 400"));
}

}  // namespace
}  // namespace transept
