// Proves how prompts of a family whose encoder reads a picture among ids become items (Florence-2), and that items
// which another process has prepared are checked: places and rows, ids, shapes, lengths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_dir_testing.h"
#include "multimodal/multimodal_testing.h"
#include "prompts/prompt_processor.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kMedia = 36, kRows = 13;

// A text is a token, 7, for each of its characters.
class SevenTokenizer final : public Tokenizer {
 public:
  StatusOr<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const override {
    EXPECT_FALSE(options.add_special_tokens);
    return std::vector<int32_t>(text.size(), 7);
  }
  void append_bytes(std::span<const int32_t>, int32_t, std::string&) const override {}
  std::string token_to_string(int32_t) const override { return "x"; }
  std::optional<int32_t> string_to_token(std::string_view) const override { return std::nullopt; }
  bool is_special(int32_t) const override { return false; }
  int32_t vocab_size() const override { return 40; }
};

class MediaAmongIds : public ::testing::Test {
 protected:
  MediaAmongIds() {
    config_ = ModelConfig::load(source_dir() + "/tests/models/florence2-float16").value();
    media_ = MultiModalRegistry::create(config_).value();
    ModelSpec spec;
    spec.family = "florence2";
    spec.vocab_size = spec.encoder_vocab_size = 40;
    spec.max_encoder_positions = spec.max_decoder_positions = 24;
    spec.max_item_rows = 60;
    spec.modalities = {"image"};
    spec.media_token_id = kMedia;
    prompts_.emplace(config_, GenerationConfig::load(config_.path, config_).value(), spec,
                     PromptProcessor::Limits{24, 24}, PromptProcessor::Parts{&tokenizer_, "", media_.get()});
  }

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

  // An item as it should be.
  EncoderItem sound_item() {
    EncoderItem item = process(prompt_with(TextPrompt{"ab"})).value().items.front();
    EXPECT_EQ(prompts_->check_item(item), ok_status());
    return item;
  }
  std::string param_of(const EncoderItem& item) { return error_param(prompts_->check_item(item)); }

  SevenTokenizer tokenizer_;
  ModelConfig config_;
  std::unique_ptr<MultiModalRegistry> media_;
  std::optional<PromptProcessor> prompts_;
};

TEST_F(MediaAmongIds, ATextBesideAPictureIsTheEncoders) {
  const EncoderDecoderInputs inputs = process(prompt_with(TextPrompt{"ab"})).value();
  ASSERT_EQ(inputs.items.size(), 1u);
  const EncoderItem& item = inputs.items.front();
  std::vector<int32_t> expected(kRows, kMedia);
  for (const int32_t id : {0, 7, 7, 2}) expected.push_back(id);
  EXPECT_EQ(item.token_ids, expected);
  ASSERT_NE(item.features, nullptr);
  EXPECT_EQ(item.features->num_positions, kRows);
  EXPECT_EQ(item.num_positions(), kRows + 4);
  EXPECT_EQ(item.num_rows(), 48) << "of the first map";
  EXPECT_EQ(item.consumers, Consumers::kCross);
  EXPECT_EQ(inputs.encoder_prompt, "ab");
  EXPECT_FALSE(inputs.prompt.has_value());
  EXPECT_THAT(inputs.prompt_token_ids, ElementsAre(2));
}

TEST_F(MediaAmongIds, ATaskWordIsShownAsItWasGiven) {
  EncoderDecoderPrompt prompt = prompt_with(TextPrompt{"<REGION_TO_OCR>"});
  EXPECT_EQ(process(prompt).status().code(), absl::StatusCode::kOutOfRange) << "its sentence does not fit";
  EXPECT_THAT(error_message(process(prompt).status()), HasSubstr("the image with its text has 43 encoder positions"));
  prompt = prompt_with(TextPrompt{"<OCR> "});
  EXPECT_EQ(error_param(process(prompt).status()), "prompt");
}

TEST_F(MediaAmongIds, EachSideMayBeGivenByName) {
  EncoderDecoderPrompt prompt = prompt_with({});
  prompt.encoder.content = TextPrompt{"a"};
  prompt.encoder_param = "encoder_prompt";
  prompt.decoder = SingletonPrompt{TokensPrompt{{2, 5}}, {}};
  const EncoderDecoderInputs inputs = process(prompt).value();
  EXPECT_EQ(inputs.items.front().num_positions(), kRows + 3);
  EXPECT_THAT(inputs.prompt_token_ids, ElementsAre(2, 5));
  prompt.encoder.content = TokensPrompt{{kMedia, 5}};
  EXPECT_EQ(error_param(process(prompt).status()), "encoder_prompt");
}

TEST_F(MediaAmongIds, IdsAreTakenAsTheyAre) {
  std::vector<int32_t> ids(kRows, kMedia);
  ids.insert(ids.begin() + 4, 9);
  EXPECT_EQ(process(prompt_with(TokensPrompt{ids})).value().items.front().token_ids, ids);
  ids.push_back(kMedia);
  EXPECT_EQ(error_param(process(prompt_with(TokensPrompt{ids})).status()), "prompt");
  ids.back() = 40;
  EXPECT_EQ(error_param(process(prompt_with(TokensPrompt{ids})).status()), "prompt");
}

TEST_F(MediaAmongIds, ItemsOfAnotherProcessAreChecked) {
  EncoderItem item = sound_item();
  item.token_ids.pop_back();
  EXPECT_EQ(prompts_->check_item(item), ok_status());
  item = sound_item();
  item.token_ids.front() = 5;
  EXPECT_THAT(error_message(prompts_->check_item(item)), HasSubstr("12 ids are places for the 13 rows of the image"));
  EXPECT_EQ(param_of(item), "token_ids");
  item = sound_item();
  item.token_ids.push_back(kMedia);
  EXPECT_EQ(param_of(item), "token_ids");
  for (const int32_t id : {-1, 40, INT32_MAX}) {
    item = sound_item();
    item.token_ids.back() = id;
    EXPECT_EQ(param_of(item), "token_ids") << id;
  }
  item = sound_item();
  item.token_ids.clear();
  EXPECT_EQ(param_of(item), "token_ids");
  item = sound_item();
  item.features = nullptr;
  EXPECT_EQ(param_of(item), "has_features");
  item = sound_item();
  item.token_ids.resize(25, 5);
  EXPECT_EQ(param_of(item), "num_positions");
}

TEST_F(MediaAmongIds, FeaturesOfAnotherProcessAreChecked) {
  const auto changed = [&](auto change) {
    EncoderItem item = sound_item();
    EncoderFeatures features = *item.features;
    change(features);
    item.features = std::make_shared<const EncoderFeatures>(std::move(features));
    return param_of(item);
  };
  EXPECT_EQ(changed([](EncoderFeatures& features) { features.modality = Modality::kAudio; }), "modality");
  EXPECT_EQ(changed([](EncoderFeatures& features) { features.shape = {22, 16}; }), "shape");
  EXPECT_EQ(changed([](EncoderFeatures& features) { features.shape = {3, 16, 200}; }), "shape");
  EXPECT_EQ(changed([](EncoderFeatures& features) { ++features.num_positions; }), "num_positions");
  EXPECT_EQ(changed([](EncoderFeatures& features) { features.num_rows = 0; }), "num_positions");
}

}  // namespace
}  // namespace transept
