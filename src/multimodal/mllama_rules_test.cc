// Prompts of Mllama: what tokens see (against what transformers' masks say, tests/mllama_family.py), and what is
// refused; and what the files of a folder say of pictures.
#include "multimodal/mllama_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "multimodal/mllama_pictures.h"
#include "multimodal/multimodal_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::json_of;
using testing::TestFolder;

constexpr int32_t kVocab = 20, kImage = 20;  // the first id that only prompts have

constexpr std::string_view kTower = R"("image_size": 8, "patch_size": 4, "max_num_tiles": 4)";

ModelConfig config_of(const std::string& dir, std::string_view tower = kTower, std::string_view fields = "") {
  ModelConfig config;
  config.path = dir;
  config.model_type = "mllama";
  config.vocab_size = kVocab;
  config.raw = json_of(str_cat(R"({"image_token_index": 20)", fields, R"(, "vision_config": {)", tower, "}}"));
  return config;
}

// Of 4 tiles of 5 rows each.
EncoderItem picture(int32_t num_tiles) {
  auto features = std::make_shared<EncoderFeatures>();
  features->modality = Modality::kImage;
  features->num_positions = 20;
  features->num_last_positions = 20 - 5 * num_tiles;
  return EncoderItem({}, std::move(features));
}

StatusOr<EncoderDecoderInputs> fill(std::vector<int32_t> ids, std::vector<EncoderItem> items, bool is_text = true,
                                    std::optional<int64_t> truncate = {}, std::string_view fields = "") {
  InputContext context;
  context.family = "mllama";
  context.vocab_size = kVocab;
  context.prompt_vocab_size = kVocab + kMllamaPromptTokens;
  context.eos = {7};
  const auto rules = make_mllama_rules(config_of("nowhere", kTower, fields), context);
  EXPECT_TRUE(rules->is_decoder_alone());
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

TEST(MllamaRules, TokensSeeThePicturesBeforeThem) {
  for (const bool is_text : {true, false}) {
    const auto inputs = fill({5, kImage, kImage, 6, kImage, 7}, {picture(2), picture(1), picture(4)}, is_text);
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    EXPECT_THAT(inputs->prompt_token_ids, ElementsAre(5, 20, 20, 6, 20, 7)) << "as they stand, an end token too";
    EXPECT_THAT(inputs->layout.ranges, ElementsAre(RowRange{0, 0, 60, 1}, RowRange{1, 0, 10, 0}, RowRange{2, 0, 15, 0},
                                                   RowRange{4, 15, 35, 0}));
    EXPECT_TRUE(inputs->layout.prompt_positions.empty());
  }
  EXPECT_THAT(fill({kImage, 5}, {picture(3)})->layout.ranges, ElementsAre(RowRange{0, 0, 15, 0}));
}

TEST(MllamaRules, WithoutPicturesNothingIsCrossed) {
  const auto inputs = fill({5, 6, 7}, {});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT(inputs->layout.ranges, ElementsAre(RowRange{0, 0, 0, kMllamaBeforePictures}));
  EXPECT_THAT(fill({5, 6, 7}, {}, true, 2)->prompt_token_ids, ElementsAre(6, 7)) << "the last are kept";
}

TEST(MllamaRules, RefuseWhatDoesNotFit) {
  EXPECT_THAT(refusal({20, 5, 20}, {picture(1)}), AllOf(HasSubstr("has 2 <|image|>"), HasSubstr("1 picture:")));
  EXPECT_THAT(refusal({5}, {picture(1), picture(1)}), AllOf(HasSubstr("has 0"), HasSubstr("2 pictures")));
  EXPECT_THAT(refusal({20}, {}), AllOf(HasSubstr("has 1 <|image|>"), HasSubstr("0 pictures")));
  EXPECT_THAT(refusal({5, 28}, {}), HasSubstr("28 is outside the vocabulary of 28"));
  EXPECT_THAT(refusal({}, {}), HasSubstr("no tokens"));
  EXPECT_TRUE(fill({5, 27}, {}).ok()) << "the last of the ids that only prompts have";
  // Over a handle nothing else asks: the encoder's side is not read.
  EXPECT_EQ(error_param(fill({20, 5, 6}, {picture(1)}, true, 2).status()), "truncate_prompt_tokens");
}

// Of 5 rows a tile in use; the others are left out.
EncoderItem strict_picture(int32_t num_tiles) {
  auto features = std::make_shared<EncoderFeatures>();
  features->modality = Modality::kImage;
  features->num_positions = 5 * num_tiles;
  return EncoderItem({}, std::move(features));
}

TEST(MllamaRules, StrictlyTokensBeforeThePicturesSeeNothing) {
  const auto inputs = fill({5, kImage, kImage, 6, kImage, 7}, {strict_picture(2), strict_picture(1), strict_picture(4)},
                           true, {}, R"(, "mllama_strict_mask": true)");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT(inputs->layout.ranges, ElementsAre(RowRange{0, 0, 0, kMllamaBeforePictures}, RowRange{1, 0, 10, 0},
                                                 RowRange{2, 0, 15, 0}, RowRange{4, 15, 35, 0}));
  EXPECT_THAT(fill({kImage, 5}, {strict_picture(3)}, true, {}, R"(, "mllama_strict_mask": true)")->layout.ranges,
              ElementsAre(RowRange{0, 0, 15, 0}))
      << "no token is before it";
}

TEST(MllamaRanges, AreThoseOfTransformersMasks) {
  const auto text = read_file(source_dir() + "/tests/models/mllama-float32/ranges.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const Json prompts = json_of(*text);
  const auto number = [](const Json& value) { return static_cast<int32_t>(value.as_int()); };
  for (const Json& prompt : prompts.as_array()) {
    const int32_t a_tile = number(*prompt.find("rows_a_tile")), max_tiles = number(*prompt.find("max_tiles"));
    const Json::Array &tiles = prompt.find("tiles")->as_array(), &texts = prompt.find("texts")->as_array();
    std::vector<MllamaPlace> pictures;
    int32_t token = number(texts[0]);
    for (size_t i = 0; i < tiles.size(); ++i) {
      pictures.push_back({token, number(tiles[i]) * a_tile});
      token += 1 + number(texts[i + 1]);
    }
    std::vector<RowRange> expected;
    for (const Json& range : prompt.find("ranges")->as_array()) {
      const Json::Array& of = range.as_array();
      expected.push_back({number(of[0]), number(of[1]), number(of[2]), static_cast<uint8_t>(number(of[3]))});
    }
    const auto num_positions = static_cast<int32_t>(tiles.size()) * max_tiles * a_tile;
    EXPECT_EQ(mllama_ranges(pictures, num_positions), expected) << prompt.dump();
  }
  EXPECT_GE(prompts.as_array().size(), 8u);
}

// ---- Files

class MllamaFiles : public ::testing::Test {
 protected:
  void write(const std::string& fields) {
    dir_.write("preprocessor_config.json", str_cat(R"({"image_processor_type": "MllamaImageProcessor")", fields, "}"));
  }
  std::string error(std::string_view tower = kTower) {
    const auto pictures = read_mllama_pictures(config_of(dir_.path(), tower));
    EXPECT_FALSE(pictures.ok()) << tower;
    return pictures.ok() ? "" : error_message(pictures.status());
  }
  TestFolder dir_;
};

TEST_F(MllamaFiles, SayWhatTheTowerTakes) {
  const auto pictures = read_mllama_pictures(config_of(dir_.path()));
  ASSERT_TRUE(pictures.ok()) << pictures.status();
  EXPECT_EQ(pictures->rows_a_tile(), 5);
  EXPECT_EQ(pictures->padded_rows_a_tile(), 8);
  EXPECT_EQ(pictures->num_positions(), 20);
  EXPECT_EQ(pictures->num_rows(), 32);
  EXPECT_EQ(pictures->num_tiles(6), 4) << "two by two";
  EXPECT_EQ(pictures->num_tiles(0), 0);
  EXPECT_EQ(pictures->num_tiles(9), 0);
  const auto published = read_mllama_pictures(config_of(dir_.path(), R"("image_size": 560)"));
  EXPECT_EQ(published->num_positions(), 6404);
  EXPECT_EQ(published->num_rows(), 6432);
}

TEST_F(MllamaFiles, AreCheckedNumberByNumber) {
  EXPECT_THAT(error(R"("num_channels": 1)"), HasSubstr("vision_config: num_channels: 1 is not supported"));
  EXPECT_THAT(error(R"("image_size": 0)"), HasSubstr("image_size: expected a whole number from 1"));
  EXPECT_THAT(error(R"("image_size": 8, "patch_size": 9)"), HasSubstr("patch_size: is larger than image_size"));
  EXPECT_THAT(error(R"("image_size": 30000, "patch_size": 1)"), HasSubstr("rows a picture, more than the"));
  EXPECT_THAT(error(R"("max_num_tiles": 65)"), HasSubstr("max_num_tiles: expected"));
  EXPECT_THAT(error(R"("max_num_tiles": 3)"), HasSubstr("max_num_tiles: 3 is not the 4"));
  EXPECT_THAT(error(R"("supported_aspect_ratios": [])"), HasSubstr("supported_aspect_ratios: expected a list"));
  EXPECT_THAT(error(R"("supported_aspect_ratios": [[1, 1], 2])"), HasSubstr("expected pairs of whole numbers"));
  EXPECT_THAT(error(R"("supported_aspect_ratios": [[1, 1]])"),
              HasSubstr("supported_aspect_ratios: 1 of them, and 4 tiles have 8 arrangements"));
}

// Without padding the mask of transformers would be `[-0:]`: everything.
TEST_F(MllamaFiles, TilesAlwaysHaveRowsOfPadding) {
  for (MllamaPictures pictures; pictures.image < 4000; ++pictures.image) {
    ASSERT_GT(pictures.padded_rows_a_tile(), pictures.rows_a_tile()) << pictures.image;
  }
}

TEST_F(MllamaFiles, MustAgree) {
  write(R"(, "size": {"height": 8, "width": 8}, "max_image_tiles": 2)");
  EXPECT_THAT(error(), AllOf(HasSubstr("preprocessor_config.json: max_image_tiles: 2 contradicts"),
                             HasSubstr("config.json: vision_config: max_num_tiles: 4")));
  write(R"(, "size": {"height": 12, "width": 12})");
  EXPECT_THAT(error(), AllOf(HasSubstr("preprocessor_config.json: size: 12 contradicts"),
                             HasSubstr("config.json: vision_config: image_size: 8")));
  write(R"(, "size": {"height": 8, "width": 8})");
  EXPECT_TRUE(read_mllama_pictures(config_of(dir_.path())).ok());
}

TEST_F(MllamaFiles, SayWhoseMasksTheyMean) {
  EXPECT_FALSE(*read_mllama_strict_mask(config_of("dir")));
  EXPECT_TRUE(*read_mllama_strict_mask(config_of("dir", kTower, R"(, "mllama_strict_mask": true)")));
  EXPECT_THAT(error_message(read_mllama_pictures(config_of("dir", kTower, R"(, "mllama_strict_mask": 1)")).status()),
              HasSubstr("dir/config.json: mllama_strict_mask: "));
}

TEST_F(MllamaFiles, MarkPicturesByAnIdThatPromptsMayHold) {
  EXPECT_EQ(*read_mllama_image_token(config_of("dir")), kImage);
  EXPECT_EQ(*read_mllama_image_token(config_of("dir", kTower, R"(, "image_token_id": 27)")), 27);
  EXPECT_THAT(error_message(read_mllama_image_token(config_of("dir", kTower, R"(, "image_token_id": 28)")).status()),
              HasSubstr("dir/config.json: image_token_id: 28 is outside the 28 ids"));
}

// Shapes and arrangements come from other processes, too.
TEST_F(MllamaFiles, CountTilesOfArrangementsThatBelongToTheirShape) {
  const auto rows = make_mllama_image_rows(config_of(dir_.path()));
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto count = [&](std::vector<int64_t> shape, std::vector<int32_t> extras) {
    return (*rows)->count(shape, extras);
  };
  const auto two = count({2, 3, 8, 8}, {5});  // two rows of one tile
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->num_positions, 20);
  EXPECT_EQ(two->num_rows, 32);
  EXPECT_EQ(two->num_last_positions, 10);
  EXPECT_EQ(count({4, 3, 8, 8}, {6})->num_last_positions, 0);
  const auto strict = make_mllama_image_rows(config_of(dir_.path(), kTower, R"(, "mllama_strict_mask": true)"));
  EXPECT_EQ((*strict)->count(std::vector<int64_t>{2, 3, 8, 8}, std::vector<int32_t>{5})->num_positions, 10);
  EXPECT_EQ((*strict)->count(std::vector<int64_t>{2, 3, 8, 8}, std::vector<int32_t>{5})->num_rows, 32);
  EXPECT_EQ((*strict)->count(std::vector<int64_t>{2, 3, 8, 8}, std::vector<int32_t>{5})->num_last_positions, 0);
  for (const std::vector<int32_t>& ids : std::vector<std::vector<int32_t>>{{}, {1}, {0}, {-1}, {9}, {2, 2}, {4}}) {
    EXPECT_THAT(std::string(count({2, 3, 8, 8}, ids).status().message()), HasSubstr("no arrangement of 2 tiles"));
  }
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {3, 8, 8}, {2, 3, 8, 9}, {2, 3, 9, 8}, {2, 1, 8, 8}, {0, 3, 8, 8}, {5, 3, 8, 8}, {-1, 3, 8, 8}}) {
    EXPECT_THAT(std::string(count(shape, {2}).status().message()), HasSubstr("the tower takes 1 to 4 tiles of 8 x 8"));
  }
}

}  // namespace
}  // namespace transept
