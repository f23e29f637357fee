// Prompts of CogAgent: what the templates make of a question (against what the published build_conversation_input_ids
// has, tests/cogagent_family.py), where tokens of a picture stand, and what is refused; and how a picture becomes two.
#include "multimodal/cogagent_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "multimodal/cogagent_pictures.h"
#include "multimodal/multimodal_testing.h"
#include "multimodal/registry.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::json_of;

ModelConfig config_of(std::string_view fields = "") {
  ModelConfig config;
  config.path = "dir";
  config.model_type = "cogagent";
  config.vocab_size = 20;
  config.pad_token_id = 0;
  config.raw =
      json_of(str_cat(R"({"cross_image_size": 12)", fields, R"(, "vision_config": {"image_size": 8, "patch_size": 4},)",
                      R"( "cross_vision_config": {"patch_size": 4}})"));
  return config;
}

EncoderItem form(int64_t side, int32_t num_positions) {
  auto features = std::make_shared<EncoderFeatures>();
  features->modality = Modality::kImage;
  features->shape = {3, side, side};
  features->num_positions = num_positions;
  return EncoderItem({}, std::move(features));
}

// As the registry gives them: of 4 patches, and of 9.
std::vector<EncoderItem> picture() { return {form(8, 6), form(12, 9)}; }

struct Asked {
  std::string text;  // that was tokenised
  StatusOr<EncoderDecoderInputs> inputs;
};

Asked fill(const PromptContent& content, std::vector<EncoderItem> items, std::string_view fields = "",
           std::optional<bool> special = {}) {
  InputContext context;
  context.family = "cogagent";
  context.vocab_size = 20;
  context.bos = 1;
  context.eos = {2};
  const auto rules = make_cogagent_rules(config_of(fields), context);
  EXPECT_TRUE(rules->is_decoder_alone());
  EncoderDecoderPrompt prompt;
  if (!std::holds_alternative<std::monostate>(content)) prompt.decoder = SingletonPrompt{content, {}};
  prompt.decoder_beside_media = true;
  prompt.decoder_param = "prompt";
  PromptOptions options;
  options.add_special_tokens = special;
  EncoderDecoderInputs inputs;
  inputs.items = std::move(items);
  Asked asked{"", EncoderDecoderInputs()};
  const auto tokenize = [&](const std::string& text, bool with_special) -> StatusOr<std::vector<int32_t>> {
    EXPECT_FALSE(with_special);
    asked.text = text;
    return text.empty() ? std::vector<int32_t>() : std::vector<int32_t>{7, 2};
  };
  const Status filled = rules->fill_decoder(prompt, options, tokenize, inputs);
  asked.inputs = filled.ok() ? StatusOr<EncoderDecoderInputs>(std::move(inputs)) : filled;
  return asked;
}

std::string refusal(const PromptContent& content, std::vector<EncoderItem> items, std::string_view param = "prompt") {
  const Asked asked = fill(content, std::move(items));
  EXPECT_FALSE(asked.inputs.ok());
  if (asked.inputs.ok()) return "";
  EXPECT_EQ(error_param(asked.inputs.status()), param);
  return error_message(asked.inputs.status());
}

TEST(CogAgentRules, TheTemplatesWordsStandAroundAQuestion) {
  const Asked asked = fill(TextPrompt{"What?"}, picture());
  ASSERT_TRUE(asked.inputs.ok()) << asked.inputs.status();
  EXPECT_EQ(asked.text, " [INST] What? [/INST] ");
  EXPECT_THAT(asked.inputs->prompt_token_ids, ElementsAre(1, 0, 0, 0, 0, 0, 0, 7, 2)) << "an end token stays";
  EXPECT_EQ(asked.inputs->prompt, "What?");
  EXPECT_EQ(fill(TextPrompt{"What?"}, picture(), "", false).text, "What?") << "as it stands";
  const auto text_of = [](std::string_view version) {
    return fill(TextPrompt{"Q"}, picture(), str_cat(R"(, "template_version": ")", version, "\"")).text;
  };
  EXPECT_EQ(text_of("base"), "Q");
  EXPECT_EQ(text_of("vqa"), "<EOI>Question: Q Short answer:");
  EXPECT_EQ(text_of("chat_old"), "<EOI>Question: Q Answer:");
}

TEST(CogAgentRules, TheTemplatesAreThePublishedOnes) {
  const auto text = read_file(source_dir() + "/tests/models/cogagent-float32/prompts.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const Json prompts = json_of(*text);
  for (const Json& prompt : prompts.as_array()) {
    const std::string fields = str_cat(R"(, "template_version": )", prompt.find("template_version")->dump());
    EXPECT_EQ(fill(TextPrompt{prompt.find("query")->as_string()}, picture(), fields).text,
              prompt.find("text")->as_string());
  }
}

TEST(CogAgentRules, IdsHaveOneTokenForThePictureOrAllOfThem) {
  for (const std::vector<int32_t>& ids : std::vector<std::vector<int32_t>>{{1, 0, 5, 3}, {1, 0, 0, 0, 0, 0, 0, 5, 3}}) {
    const Asked asked = fill(TokensPrompt{ids}, picture());
    ASSERT_TRUE(asked.inputs.ok()) << asked.inputs.status();
    EXPECT_THAT(asked.inputs->prompt_token_ids, ElementsAre(1, 0, 0, 0, 0, 0, 0, 5, 3));
    EXPECT_EQ(asked.inputs->items[0].splice_offset, 1);
  }
  // A text may begin with the same id.
  EXPECT_THAT(fill(TokensPrompt{{1, 0, 0, 0, 0, 0, 0, 0, 5}}, picture()).inputs->prompt_token_ids,
              ElementsAre(1, 0, 0, 0, 0, 0, 0, 0, 5));
}

TEST(CogAgentRules, TheSmallFormIsSplicedAndTheLargeOneCrossed) {
  const auto rules = make_cogagent_rules(config_of(), InputContext());
  EXPECT_EQ(rules->consumers_of(*picture()[0].features), Consumers::kSplice);
  EXPECT_EQ(rules->consumers_of(*picture()[1].features), Consumers::kCross);
}

TEST(CogAgentRules, ThePatchesOfAPictureStandAtOnePosition) {
  const DecoderLayout layout = fill(TokensPrompt{{1, 0, 5, 3}}, picture()).inputs->layout;
  EXPECT_THAT(layout.prompt_positions, ElementsAre(0, 1, 2, 2, 2, 2, 3, 4, 5));
  EXPECT_EQ(layout.position_delta, -3);
  EXPECT_THAT(layout.ranges, ElementsAre(RowRange{0, 0, 9, 0}, RowRange{1, 0, 9, kExpertRows}, RowRange{6, 0, 9, 0}));
}

TEST(CogAgentRules, LayoutsAreThoseOfThePublishedCode) {
  std::ifstream file(source_dir() + "/tests/models/cogagent-float32/forward.jsonl");
  int num_passes = 0;
  for (std::string line; std::getline(file, line); ++num_passes) {
    const Json pass = json_of(line);
    const auto size = [&](const char* key) { return static_cast<int32_t>(pass.find(key)->as_array().size()); };
    const auto offset = static_cast<int32_t>(pass.find("offset")->as_int());
    const DecoderLayout layout = cogagent_layout(size("decoder_ids"), offset, size("spliced"), size("encoder"));
    std::vector<int32_t> positions;
    for (const Json& position : pass.find("positions")->as_array().front().as_array()) {
      positions.push_back(static_cast<int32_t>(position.as_int()));
    }
    EXPECT_EQ(layout.prompt_positions, positions);
    EXPECT_EQ(layout.position_delta + size("decoder_ids"), positions.back() + 1) << "what follows goes on";
    std::vector<RowRange> ranges;
    for (const Json& range : pass.find("ranges")->as_array()) {
      const auto number = [&](size_t i) { return static_cast<int32_t>(range.as_array()[i].as_int()); };
      ranges.push_back({number(0), number(1), number(2), static_cast<uint8_t>(number(3))});
    }
    EXPECT_EQ(layout.ranges, ranges);
  }
  EXPECT_EQ(num_passes, 3);
}

TEST(CogAgentRules, RefuseWhatDoesNotFit) {
  constexpr std::string_view kMedia = "multi_modal_data";
  EXPECT_THAT(refusal(TextPrompt{"text"}, {}, kMedia), HasSubstr("reads a picture, and the request has none"));
  EXPECT_THAT(refusal(TokensPrompt{{1, 0, 5}}, {}, kMedia), HasSubstr("reads a picture, and the request has none"));
  EXPECT_THAT(refusal(std::monostate(), picture()), HasSubstr("give the question about it"));
  for (const std::vector<int32_t>& ids :
       std::vector<std::vector<int32_t>>{{1}, {1, 5}, {0, 0, 5}, {1, 0, 0, 5}, {1, 0, 0, 0, 0, 0, 5}}) {
    EXPECT_THAT(refusal(TokensPrompt{ids}, picture()),
                HasSubstr("begin with 1 and then 0, once or as often as the picture has rows: 6 times"));
  }
  EXPECT_THAT(refusal(TokensPrompt{{1, 0, 20}}, picture()), HasSubstr("20 is outside the vocabulary of 20"));
}

// ---- Pictures

TEST(CogAgentPictures, AreThePublishedOnesWhereNoFieldSaysMore) {
  ModelConfig config;
  config.raw = json_of(R"({"vision_config": {}})");
  const auto pictures = read_cogagent_pictures(config);
  ASSERT_TRUE(pictures.ok()) << pictures.status();
  EXPECT_EQ(pictures->num_spliced(), 258);
  EXPECT_EQ(pictures->num_crossed(), 6400);
  EXPECT_EQ(pictures->num_large_rows(), 6401);
}

// Shapes come from other processes, too.
TEST(CogAgentPictures, AreToldApartByTheirSizes) {
  const auto rows = make_cogagent_image_rows(config_of());
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto count = [&](std::vector<int64_t> shape) { return (*rows)->count(shape, {}); };
  EXPECT_EQ(count({3, 8, 8})->num_positions, 6);
  EXPECT_EQ(count({3, 12, 12})->num_positions, 9);
  EXPECT_EQ(count({3, 12, 12})->num_rows, 10);
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{3, 8, 12}, {1, 8, 8}, {3, 8}, {3, 8, 8, 1}, {3, -8, -8}}) {
    EXPECT_THAT(std::string(count(shape).status().message()),
                AllOf(HasSubstr("8 x 8 and 12 x 12"), HasSubstr("cross_image_size")));
  }
}

TEST(CogAgentPictures, OnePictureBecomesTwoItems) {
  const auto registry = MultiModalRegistry::create(config_of());
  ASSERT_TRUE(registry.ok()) << registry.status();
  Json item = Json::object(), media = Json::object();
  item.set("rgb", testing::base64_of(std::string(static_cast<size_t>(3 * 5 * 4), '\x80')));
  item.set("width", 5);
  item.set("height", 4);
  media.set("image", std::move(item));
  int64_t charged = 0;
  MediaAccess access;
  access.charge = [&](int64_t bytes) {
    charged = std::max(charged, bytes);
    return ok_status();
  };
  const auto items = (*registry)->process(media, access);
  ASSERT_TRUE(items.ok()) << items.status();
  ASSERT_EQ(items->size(), 2u);
  EXPECT_THAT((*items)[0]->shape, ElementsAre(3, 8, 8));
  EXPECT_THAT((*items)[1]->shape, ElementsAre(3, 12, 12));
  EXPECT_EQ(charged, static_cast<int64_t>(sizeof(float)) * 3 * (8 * 8 + 12 * 12));
  for (const auto& form : *items) {
    EXPECT_EQ(form->image.width, 5);
    EXPECT_EQ(form->image.height, 4);
    // CLIP's mean and deviation of the first channel.
    EXPECT_NEAR(form->values.front(), (128.0 / 255 - 0.48145466) / 0.26862954, 1e-6);
    EXPECT_TRUE((*registry)->check(*form).ok());
  }
  Json two = Json::object();
  two.set("image", Json(Json::Array{*media.find("image"), *media.find("image")}));
  EXPECT_THAT(error_message((*registry)->process(two, {}).status()), HasSubstr("2 items, this model takes 1"));
}

}  // namespace
}  // namespace transept
