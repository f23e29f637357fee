// Proves how a prompt with a picture that is read in two forms becomes items (CogAgent), and that items which another
// process has prepared have the use of their form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_dir_testing.h"
#include "multimodal/multimodal_testing.h"
#include "prompts/prompt_processor.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

class TwoForms : public ::testing::Test {
 protected:
  TwoForms() {
    config_ = ModelConfig::load(source_dir() + "/tests/models/cogagent-float32").value();
    media_ = MultiModalRegistry::create(config_).value();
    ModelSpec spec;
    spec.family = "cogagent";
    spec.d_model = 24;
    spec.encoder_width = 16;
    spec.vocab_size = 420;
    spec.max_encoder_positions = 15;
    spec.max_decoder_positions = 96;
    spec.max_item_rows = 10;
    spec.modalities = {"image"};
    prompts_.emplace(config_, GenerationConfig::load(config_.path, config_).value(), spec,
                     PromptProcessor::Limits{15, 96}, PromptProcessor::Parts{nullptr, "none", media_.get()});
  }

  static EncoderDecoderPrompt prompt_of(std::vector<int32_t> ids) {
    EncoderDecoderPrompt prompt;
    prompt.encoder.multi_modal_data = testing::json_of(
        R"({"image": {"rgb": ")" + testing::base64_of(std::string(12, 'a')) + R"(", "width": 2, "height": 2}})");
    prompt.decoder = SingletonPrompt{TokensPrompt{std::move(ids)}, {}};
    prompt.decoder_beside_media = true;
    prompt.decoder_param = "prompt";
    return prompt;
  }

  ModelConfig config_;
  std::unique_ptr<MultiModalRegistry> media_;
  std::optional<PromptProcessor> prompts_;
};

TEST_F(TwoForms, OneIsSplicedAndOneCrossed) {
  const auto inputs = prompts_->process(prompt_of({1, 0, 5, 3}), PromptProcessor::Options());
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_EQ(inputs->items.size(), 2u);
  EXPECT_EQ(inputs->items[0].consumers, Consumers::kSplice);
  EXPECT_EQ(inputs->items[0].splice_offset, 1);
  EXPECT_EQ(inputs->items[0].num_positions(), 6);
  EXPECT_EQ(inputs->items[1].consumers, Consumers::kCross);
  EXPECT_EQ(num_cross_positions(inputs->items), 9);
  EXPECT_EQ(inputs->items[1].num_rows(), 10);
  EXPECT_EQ(inputs->prompt_token_ids.size(), 9u);
  // Without a prompt beside it, too: nobody may take the small one for what is crossed.
  const auto alone = prompts_->process_encoder(prompt_of({1}), PromptProcessor::Options());
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->items[0].consumers, Consumers::kSplice);
  // A request over a handle has its items, and a prompt of its own with their places.
  EncoderDecoderPrompt over = prompt_of({1, 0, 5, 3});
  over.encoder = {};
  const auto placed = prompts_->process_decoder(over, PromptProcessor::Options(), alone->items);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->prompt_token_ids, inputs->prompt_token_ids);
  EXPECT_EQ(placed->items[0].splice_offset, 1);
}

TEST_F(TwoForms, ItemsOfOtherProcessesHaveTheUseOfTheirForm) {
  std::vector<EncoderItem> items = prompts_->process(prompt_of({1, 0, 5}), PromptProcessor::Options()).value().items;
  for (EncoderItem& item : items) {
    EXPECT_EQ(prompts_->check_item(item), ok_status());
    const Consumers right = item.consumers;
    for (const Consumers wrong : {Consumers::kCross, Consumers::kSplice, Consumers::kCross | Consumers::kSplice}) {
      if (wrong == right) continue;
      item.consumers = wrong;
      const Status refused = prompts_->check_item(item);
      EXPECT_EQ(error_param(refused), "consumers");
      EXPECT_THAT(error_message(refused), HasSubstr("the rows of such features, and does nothing else with them"));
    }
  }
}

}  // namespace
}  // namespace transept
