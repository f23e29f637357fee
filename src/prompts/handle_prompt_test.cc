// Proves how the two sides of a request are processed apart, for requests over a handle, where the pictures have places
// in the decoder's prompt (Qwen2-VL, Mllama): together they give what one request with both gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_dir_testing.h"
#include "multimodal/multimodal_testing.h"
#include "prompts/prompt_processor.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

std::string picture_json(int width, int height) {
  const std::string pixels(3 * static_cast<size_t>(width) * static_cast<size_t>(height), 'a');
  return str_cat(R"({"rgb": ")", testing::base64_of(pixels), R"(", "width": )", width, R"(, "height": )", height, "}");
}

// The folder, and the token that stands for a picture.
class HandlePrompt : public ::testing::TestWithParam<std::pair<const char*, int32_t>> {
 protected:
  HandlePrompt() {
    const ModelConfig config = ModelConfig::load(source_dir() + "/tests/models/" + GetParam().first).value();
    media_ = MultiModalRegistry::create(config).value();
    ModelSpec spec;
    spec.family = config.model_type;
    spec.vocab_size = 48;
    spec.max_encoder_positions = spec.max_decoder_positions = 400;
    spec.modalities = {"image"};
    if (is_spliced()) spec.kv = {{.kind = KvKind::kEncoderRows, .owner = TableOwner::kItem}};
    EXPECT_EQ(spec.splices_alone(), is_spliced());
    prompts_.emplace(config, GenerationConfig::load(config.path, config).value(), spec,
                     PromptProcessor::Limits{400, 400}, PromptProcessor::Parts{nullptr, "no files", media_.get()});
  }

  static bool is_spliced() { return std::string_view(GetParam().first).starts_with("qwen2"); }

  static std::optional<SingletonPrompt> ids(std::vector<int32_t> ids) {
    return SingletonPrompt{TokensPrompt{std::move(ids)}, {}};
  }
  static EncoderDecoderPrompt pictures() {
    EncoderDecoderPrompt prompt;
    prompt.encoder.multi_modal_data =
        testing::json_of(str_cat(R"({"image": [)", picture_json(20, 5), ", ", picture_json(9, 14), "]}"));
    return prompt;
  }

  std::unique_ptr<MultiModalRegistry> media_;
  std::optional<PromptProcessor> prompts_;
};

TEST_P(HandlePrompt, BothSidesApartGiveWhatTheyGiveTogether) {
  const auto held = prompts_->process_encoder(pictures(), {});
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_TRUE(held->prompt_token_ids.empty());
  EXPECT_EQ(held->items.size(), 2u);
  const int32_t image = GetParam().second;
  for (const std::vector<int32_t>& text :
       std::vector<std::vector<int32_t>>{{5, image, 6, image, 7}, {image, 5, 6, 9, image}}) {
    EncoderDecoderPrompt whole = pictures(), rest;
    whole.decoder = rest.decoder = ids(text);
    const auto wanted = prompts_->process(whole, {});
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    const auto got = prompts_->process_decoder(rest, {}, held->items);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->prompt_token_ids, wanted->prompt_token_ids);
    EXPECT_EQ(got->layout, wanted->layout);
    EXPECT_FALSE(got->layout == DecoderLayout());
    ASSERT_EQ(got->items.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(got->items[i].splice_offset, wanted->items[i].splice_offset);
      EXPECT_EQ(got->items[i].consumers, is_spliced() ? Consumers::kSplice : Consumers::kCross);
      EXPECT_EQ(got->items[i].features, held->items[i].features) << "what is encoded is the handle's";
    }
  }
}

// A text beside the media is the decoder's, so a handle is made without it.
TEST_P(HandlePrompt, WhatStandsBesideThePicturesIsNotTheHandles) {
  EncoderDecoderPrompt prompt = pictures();
  prompt.decoder = SingletonPrompt{TextPrompt{"What is it?"}, {}};
  prompt.decoder_beside_media = true;
  const auto held = prompts_->process_encoder(prompt, {});
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(held->items.size(), 2u);
  EXPECT_EQ(held->encoder_prompt, std::nullopt);
  EXPECT_EQ(error_param(prompts_->process_encoder({.encoder = *ids({5})}, {}).status()), "prompt") << "nothing to hold";
}

TEST_P(HandlePrompt, WhatDoesNotFitTheHandleIsRefused) {
  const std::vector<EncoderItem> held = prompts_->process_encoder(pictures(), {}).value().items;
  const int32_t image = GetParam().second;
  const auto refusal = [&](std::vector<int32_t> text, std::optional<int64_t> truncate = {}) {
    PromptProcessor::Options options;
    options.truncate_prompt_tokens = truncate;
    const Status status = prompts_->process_decoder({.decoder = ids(std::move(text))}, options, held).status();
    return str_cat(error_param(status), ": ", error_message(status));
  };
  EXPECT_THAT(refusal({5, image, 6}), HasSubstr("decoder_prompt: the prompt has 1 "));
  EXPECT_THAT(refusal({5, image, 6}), HasSubstr("and the request 2 pictures"));
  EXPECT_THAT(refusal({}), HasSubstr("decoder_prompt: the prompt has 0 "));
  EXPECT_THAT(refusal({image, 5, image}, 2), HasSubstr("truncate_prompt_tokens"));
  const Status none = prompts_->process_decoder({}, {}, held).status();
  EXPECT_EQ(error_param(none), "decoder_prompt");
  EXPECT_THAT(error_message(none), HasSubstr("has its pictures within the prompt"));
}

INSTANTIATE_TEST_SUITE_P(Families, HandlePrompt,
                         ::testing::Values(std::pair("qwen2-vl-float32", 36), std::pair("mllama-float32", 40)),
                         [](const auto& test) { return std::string(test.param.first).substr(0, 5); });

}  // namespace
}  // namespace transept
