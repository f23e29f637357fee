// Proves how prompts of a model that draws its question above a picture become items (Pix2Struct's is_vqa): the text
// is drawn, the decoder gets its start alone, and what is no question is refused by its field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "multimodal/multimodal_testing.h"
#include "prompts/prompt_processor.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class QuestionPrompt : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::test_font().empty()) GTEST_SKIP() << "no font on this device (Debian: fonts-dejavu-core)";
    auto font = load_header_font(testing::test_font());
    if (!font.ok()) GTEST_SKIP() << "no FreeType on this device: " << error_message(font.status());
    const std::string from = source_dir() + "/tests/models/pix2struct-float32/";
    folder_.write("config.json", read_file(from + "config.json").value());
    std::string switches = read_file(from + "preprocessor_config.json").value();
    const size_t at = switches.find("\"is_vqa\": false");
    ASSERT_NE(at, std::string::npos);
    folder_.write("preprocessor_config.json", switches.replace(at, 15, "\"is_vqa\": true"));
    config_ = ModelConfig::load(folder_.path()).value();
    media_ = MultiModalRegistry::create(config_, detect_isa(), *font).value();
    ModelSpec spec;
    spec.family = "pix2struct";
    spec.vocab_size = 40;
    spec.max_encoder_positions = spec.max_decoder_positions = 24;
    spec.modalities = {"image"};
    prompts_.emplace(config_, GenerationConfig::load(config_.path, config_).value(), spec,
                     PromptProcessor::Limits{24, 24}, PromptProcessor::Parts{nullptr, "none", media_.get()});
  }

  // With `content` beside the picture.
  static EncoderDecoderPrompt prompt_with(PromptContent content) {
    EncoderDecoderPrompt prompt;
    prompt.encoder.multi_modal_data = testing::json_of(
        R"({"image": {"rgb": ")" + testing::base64_of(std::string(12, 'a')) + R"(", "width": 2, "height": 2}})");
    prompt.encoder_param = "multi_modal_data";
    if (std::holds_alternative<std::monostate>(content)) return prompt;
    prompt.decoder = SingletonPrompt{std::move(content), {}};
    prompt.decoder_beside_media = true;
    prompt.decoder_param = "prompt";
    return prompt;
  }
  StatusOr<EncoderDecoderInputs> process(const EncoderDecoderPrompt& prompt) {
    return prompts_->process(prompt, PromptProcessor::Options());
  }
  Status refusal(PromptContent content) {
    const Status status = process(prompt_with(std::move(content))).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(error_param(status), "prompt");
    return status;
  }

  testing::TestFolder folder_;
  ModelConfig config_;
  std::unique_ptr<MultiModalRegistry> media_;
  std::optional<PromptProcessor> prompts_;
};

TEST_F(QuestionPrompt, TheTextIsDrawnAndTheDecoderGetsItsStart) {
  const EncoderDecoderInputs inputs = process(prompt_with(TextPrompt{"What is it?"})).value();
  ASSERT_EQ(inputs.items.size(), 1u);
  EXPECT_TRUE(inputs.items.front().token_ids.empty());
  ASSERT_NE(inputs.items.front().features, nullptr);
  EXPECT_EQ(inputs.items.front().features->image.width, 2);
  EXPECT_EQ(inputs.encoder_prompt, "What is it?");
  EXPECT_FALSE(inputs.prompt.has_value());
  EXPECT_THAT(inputs.prompt_token_ids, ElementsAre(0));
  const EncoderDecoderInputs other = process(prompt_with(TextPrompt{"What is this?"})).value();
  EXPECT_NE(other.items.front().features->values, inputs.items.front().features->values);
  const EncoderDecoderInputs alone =
      prompts_->process_encoder(prompt_with(TextPrompt{"What is it?"}), PromptProcessor::Options()).value();
  EXPECT_EQ(alone.items.front().features->values, inputs.items.front().features->values);
}

TEST_F(QuestionPrompt, EachSideMayBeGivenByName) {
  EncoderDecoderPrompt prompt = prompt_with({});
  prompt.encoder.content = TextPrompt{"What?"};
  prompt.encoder_param = "encoder_prompt";
  prompt.decoder = SingletonPrompt{TokensPrompt{{0, 5}}, {}};
  const EncoderDecoderInputs inputs = process(prompt).value();
  EXPECT_THAT(inputs.prompt_token_ids, ElementsAre(0, 5));
  EXPECT_EQ(inputs.items.front().features->values,
            process(prompt_with(TextPrompt{"What?"})).value().items.front().features->values);
  prompt.encoder.content = {};
  EXPECT_EQ(error_param(process(prompt).status()), "prompt") << "the decoder's text is no question";
}

TEST_F(QuestionPrompt, WhatIsNoQuestionIsRefused) {
  EXPECT_THAT(error_message(refusal({})), HasSubstr("A header text must be provided for VQA models."));
  EXPECT_THAT(error_message(refusal(TextPrompt{""})), HasSubstr("a question is missing"));
  EXPECT_THAT(error_message(refusal(TextPrompt{" \n\t\u00a0"})), HasSubstr("a question is missing"));
  EXPECT_THAT(error_message(refusal(TokensPrompt{{1, 2}})), HasSubstr("not as token ids"));
  EXPECT_THAT(error_message(refusal(TextPrompt{std::string(1 << 20, 'x')})), HasSubstr("1048576 bytes"));
  EncoderDecoderPrompt text;
  text.encoder.content = TextPrompt{"What?"};
  EXPECT_THAT(error_message(process(text).status()), HasSubstr("give it in multi_modal_data, beside the question"));
  PromptProcessor::Options cut;
  cut.truncate_prompt_tokens = 3;
  EXPECT_EQ(error_param(prompts_->process(prompt_with(TextPrompt{"What?"}), cut).status()), "truncate_prompt_tokens");
}

TEST_F(QuestionPrompt, BytesThatAreNoTextAreDrawnAsReplacements) {
  EXPECT_EQ(process(prompt_with(TextPrompt{"a\xff"})).value().items.front().features->values,
            process(prompt_with(TextPrompt{"a\ufffd"})).value().items.front().features->values);
}

}  // namespace
}  // namespace transept
