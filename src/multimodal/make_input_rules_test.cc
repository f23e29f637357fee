// What the decoder of a family is given of a text: captions (BLIP) beside tasks (Donut, Pix2Struct). Expectations are
// what transformers 5.23's BlipProcessor and BlipForConditionalGeneration.generate make of the same ids.
#include "multimodal/make_input_rules.h"

#include <gmock/gmock.h>

#include "multimodal/multimodal_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;

constexpr int32_t kStart = 38, kClass = 2, kSeparator = 3;

class MakeInputRules : public ::testing::Test {
 protected:
  // A text is a token, 7, for each of its characters; special tokens are put around it.
  StatusOr<std::vector<int32_t>> decoder_ids(std::string_view model_type, PromptContent content,
                                             std::optional<bool> add_special_tokens) const {
    const testing::TestFolder folder;
    folder.write("config.json", str_cat(R"({"model_type": ")", model_type, R"("})"));
    InputContext context;
    context.decoder_start = kStart;
    context.eos = {kSeparator};
    context.vocab_size = 40;
    const auto rules = make_input_rules(ModelConfig::load(folder.path()).value(), std::move(context));
    EncoderDecoderPrompt prompt;
    prompt.decoder = SingletonPrompt{std::move(content), {}};
    prompt.decoder_beside_media = true;
    PromptOptions options;
    options.add_special_tokens = add_special_tokens;
    const auto tokenize = [](const std::string& text, bool special) -> StatusOr<std::vector<int32_t>> {
      std::vector<int32_t> ids(text.size(), 7);
      if (!special) return ids;
      ids.insert(ids.begin(), kClass);
      ids.push_back(kSeparator);
      return ids;
    };
    EncoderDecoderInputs inputs;
    RETURN_IF_ERROR(rules->fill_decoder(prompt, options, tokenize, inputs));
    return inputs.prompt_token_ids;
  }
};

TEST_F(MakeInputRules, ACaptionsSpecialTokensAreTheStartAlone) {
  for (const std::optional<bool> special : {std::optional<bool>(), std::optional(true), std::optional(false)}) {
    EXPECT_THAT(decoder_ids("blip", TextPrompt{"abc"}, special).value(), ElementsAre(kStart, 7, 7, 7));
    EXPECT_THAT(decoder_ids("blip", TextPrompt{""}, special).value(), ElementsAre(kStart));
  }
  EXPECT_THAT(decoder_ids("blip", TokensPrompt{{kStart, 7, kSeparator}}, true).value(),
              ElementsAre(kStart, 7, kSeparator))
      << "ids beside media are taken as they are";
}

TEST_F(MakeInputRules, ATasksSpecialTokensStay) {
  EXPECT_THAT(decoder_ids("pix2struct", TextPrompt{"ab"}, {}).value(), ElementsAre(kStart, 7, 7));
  EXPECT_THAT(decoder_ids("pix2struct", TextPrompt{"ab"}, true).value(), ElementsAre(kStart, kClass, 7, 7, kSeparator));
}

}  // namespace
}  // namespace transept
