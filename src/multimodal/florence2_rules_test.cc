// Florence-2's task words and the ids around its picture, against transformers' Florence2Processor (the sentences below
// are its own: models/florence2/processing_florence2.py); and how many rows a picture becomes.
#include "multimodal/florence2_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "multimodal/image_rows.h"
#include "multimodal/python_strip.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Florence2Sentence, TaskWordsBecomeSentences) {
  const std::pair<const char*, const char*> cases[] = {
      {"<OCR>", "What is the text in the image?"},
      {"<OCR_WITH_REGION>", "What is the text in the image, with regions?"},
      {"<CAPTION>", "What does the image describe?"},
      {"<DETAILED_CAPTION>", "Describe in detail what is shown in the image."},
      {"<MORE_DETAILED_CAPTION>", "Describe with a paragraph what is shown in the image."},
      {"<OD>", "Locate the objects with category name in the image."},
      {"<DENSE_REGION_CAPTION>", "Locate the objects in the image, with their descriptions."},
      {"<REGION_PROPOSAL>", "Locate the region proposals in the image."},
      {"<CAPTION_TO_PHRASE_GROUNDING> a small boat ", "Locate the phrases in the caption: a small boat"},
      {"<REFERRING_EXPRESSION_SEGMENTATION>it", "Locate it in the image with mask"},
      {"<REGION_TO_SEGMENTATION><loc_1><loc_2>", "What is the polygon mask of region <loc_1><loc_2>"},
      {"<OPEN_VOCABULARY_DETECTION>stars", "Locate stars in the image."},
      {"<REGION_TO_CATEGORY><loc_1>", "What is the region <loc_1>?"},
      {"<REGION_TO_DESCRIPTION><loc_1>", "What does the region <loc_1> describe?"},
      {"<REGION_TO_OCR><loc_1>", "What text is in the region <loc_1>?"},
      // The word may stand anywhere, and as often as it likes; without a text the sentence has none.
      {"a <REGION_TO_OCR> b <REGION_TO_OCR>", "What text is in the region a  b?"},
      {"<REGION_TO_OCR>", "What text is in the region ?"},
      {"<REGION_TO_OCR>\xC2\xA0{}\xE3\x80\x80", "What text is in the region {}?"},
      // Others stand for themselves.
      {"", ""},
      {" a text ", " a text "},
      {"<caption>", "<caption>"},
      {"<CAPTION", "<CAPTION"}};
  for (const auto& [text, sentence] : cases) {
    const StatusOr<std::string> made = florence2_sentence(text, "prompt");
    ASSERT_TRUE(made.ok()) << text << made.status();
    EXPECT_EQ(*made, sentence) << text;
  }
}

TEST(Florence2Sentence, SomeTaskWordsAreTheWholePrompt) {
  for (const char* text : {"<CAPTION> and more", " <CAPTION>", "<OD><OD>", "<OCR>\n", "x<REGION_PROPOSAL>"}) {
    const Status refused = florence2_sentence(text, "encoder_prompt").status();
    EXPECT_THAT(error_message(refused), HasSubstr("takes no text")) << text;
    EXPECT_EQ(error_param(refused), "encoder_prompt");
  }
}

TEST(PythonStrip, TakesUnicodesSpaces) {
  EXPECT_EQ(python_strip("  a b\t\n"), "a b");
  EXPECT_EQ(python_strip("\xE2\x80\x89\x1F a\xC2\x85"), "a");
  EXPECT_EQ(python_strip(" \xE2\x80\x8B "), "\xE2\x80\x8B") << "a zero-width space is none";
  EXPECT_EQ(python_strip(" \n"), "");
  EXPECT_EQ(python_strip(""), "");
}

// A text is a token for each byte.
constexpr auto kBytesOf = [](const std::string& text, bool add_special_tokens) -> StatusOr<std::vector<int32_t>> {
  EXPECT_FALSE(add_special_tokens);
  return std::vector<int32_t>(text.begin(), text.end());
};

class Florence2RulesTest : public ::testing::Test {
 protected:
  Florence2RulesTest() {
    InputContext context;
    context.family = "florence2";
    context.decoder_start = 2;
    context.bos = 0;
    context.eos = {2};
    context.vocab_size = 200;
    context.encoder_vocab_size = 201;
    context.media_token_id = 200;
    rules_ = make_florence2_rules(std::move(context));
  }

  StatusOr<std::vector<int32_t>> ids(const PromptContent& content, const PromptOptions& options = {}) {
    return rules_->ids_around_media(content, "prompt", 3, options, kBytesOf);
  }

  std::unique_ptr<InputRules> rules_;
};

TEST_F(Florence2RulesTest, APictureStandsInFrontOfItsText) {
  EXPECT_THAT(*ids(TextPrompt{"hi"}), ElementsAre(200, 200, 200, 0, 'h', 'i', 2));
  EXPECT_THAT(*ids(std::monostate()), ElementsAre(200, 200, 200, 0, 2));
  EXPECT_THAT(*ids(TextPrompt{""}), ElementsAre(200, 200, 200, 0, 2));
  EXPECT_EQ(ids(TextPrompt{"<OCR>"})->size(), 3 + 1 + std::string_view("What is the text in the image?").size() + 1);
  PromptOptions options;
  options.add_special_tokens = false;
  EXPECT_THAT(*ids(TextPrompt{"hi"}, options), ElementsAre(200, 200, 200, 'h', 'i'));
}

TEST_F(Florence2RulesTest, IdsAreTakenAsTheyAre) {
  EXPECT_THAT(*ids(TokensPrompt{{5, 200, 200, 6, 200}}), ElementsAre(5, 200, 200, 6, 200));
  for (const std::vector<int32_t>& wrong : {std::vector<int32_t>{5}, {200, 200}, {200, 200, 200, 200}}) {
    const Status refused = ids(TokensPrompt{wrong}).status();
    EXPECT_THAT(error_message(refused), HasSubstr("places for rows of the image"));
    EXPECT_EQ(error_param(refused), "prompt");
  }
  EXPECT_THAT(error_message(ids(TokensPrompt{{200, 200, 200, 201}}).status()), HasSubstr("201"));
  EXPECT_THAT(error_message(ids(TokensPrompt{{200, 200, 200, -1}}).status()), HasSubstr("-1"));
  EXPECT_THAT(error_message(ids(TextPrompt{"a\xC8"}).status()), HasSubstr("outside the vocabulary"));
}

TEST_F(Florence2RulesTest, TheTextBesideMediaIsNotTheDecoders) {
  EncoderDecoderPrompt prompt;
  prompt.encoder.multi_modal_data = Json::object();
  prompt.decoder = SingletonPrompt{TextPrompt{"<OCR>"}, {}};
  prompt.decoder_beside_media = true;
  EncoderDecoderInputs inputs;
  ASSERT_EQ(rules_->check_encoder(prompt, {}), ok_status());
  ASSERT_EQ(rules_->fill_decoder(prompt, {}, kBytesOf, inputs), ok_status());
  EXPECT_THAT(inputs.prompt_token_ids, ElementsAre(2));
  EXPECT_FALSE(inputs.prompt.has_value());
  prompt.decoder_beside_media = false;
  prompt.decoder->content = TokensPrompt{{2, 0, 7}};
  ASSERT_EQ(rules_->fill_decoder(prompt, {}, kBytesOf, inputs), ok_status());
  EXPECT_THAT(inputs.prompt_token_ids, ElementsAre(2, 0, 7));
}

TEST_F(Florence2RulesTest, AnImageIsNeededAndNothingIsCut) {
  EncoderDecoderPrompt prompt;
  prompt.encoder.content = TextPrompt{"<OCR>"};
  EXPECT_THAT(error_message(rules_->check_encoder(prompt, {})), HasSubstr("give the image in multi_modal_data"));
  prompt.encoder.multi_modal_data = Json::object();
  EXPECT_EQ(rules_->check_encoder(prompt, {}), ok_status());
  PromptOptions options;
  options.truncate_prompt_tokens = 5;
  EXPECT_EQ(error_param(rules_->check_encoder(prompt, options)), "truncate_prompt_tokens");
}

// ---- rows

std::unique_ptr<ImageRows> rows_of(const char* vision) {
  ModelConfig config;
  config.path = "model";
  config.raw = Json::object();
  config.raw.set("vision_config", *Json::parse(vision));
  return make_florence2_image_rows(config).value();
}

TEST(Florence2ImageRows, AreThoseOfTheLastMapAndTheirMean) {
  const auto rows = rows_of("{}");  // the published tower
  const ImageRowCounts counts = rows->count(std::vector<int64_t>{3, 768, 768}, {}).value();
  EXPECT_EQ(counts.num_positions, 577);
  EXPECT_EQ(counts.num_rows, 192 * 192);
  EXPECT_EQ(rows->count(std::vector<int64_t>{3, 1, 1600}, {}).value().num_positions, 51);
  EXPECT_THAT(error_message(rows->count(std::vector<int64_t>{3, 32, 1601}, {}).status()),
              ::testing::AllOf(HasSubstr("32 x 1601"), HasSubstr("have 50")));
  EXPECT_FALSE(rows->count(std::vector<int64_t>{1, 768, 768}, {}).ok());
  EXPECT_FALSE(rows->count(std::vector<int64_t>{3, 768}, {}).ok());
  EXPECT_FALSE(rows->count(std::vector<int64_t>{3, 0, 768}, {}).ok());
  EXPECT_FALSE(rows->count(std::vector<int64_t>{3, int64_t{1} << 50, 768}, {}).ok());
}

TEST(Florence2ImageRows, ASinglePlaceHasARowMoreThanItsMap) {
  const auto rows = rows_of(R"({"patch_size": [4], "patch_stride": [4], "patch_padding": [0]})");
  const ImageRowCounts counts = rows->count(std::vector<int64_t>{3, 8, 4}, {}).value();
  EXPECT_EQ(counts.num_positions, 3);
  EXPECT_EQ(counts.num_rows, 3);
  EXPECT_THAT(error_message(rows->count(std::vector<int64_t>{3, 8, 3}, {}).status()),
              HasSubstr("smaller than a kernel"));
}

}  // namespace
}  // namespace transept
