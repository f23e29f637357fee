// Compares the tables that have a line a family: models, prompts and media, tokenizers.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/registry.h"
#include "multimodal/input_families.h"
#include "text/pipeline/tokenizer_kind.h"

namespace transept {
namespace {

TEST(Families, StandInEveryTableOnce) {
  const std::vector<FamilyTraits> models = family_traits();
  ASSERT_EQ(models.size(), input_families().size());
  for (const FamilyTraits& model : models) {
    SCOPED_TRACE(model.model_type);
    const auto is_it = [&](const InputFamily& family) { return family.model_type == model.model_type; };
    ASSERT_EQ(std::ranges::count_if(input_families(), is_it), 1);
    const InputFamily& inputs = *std::ranges::find_if(input_families(), is_it);
    const bool takes_audio = std::ranges::find(model.modalities, "audio") != model.modalities.end();
    EXPECT_EQ(inputs.make_audio != nullptr, takes_audio);
    const bool takes_images = std::ranges::find(model.modalities, "image") != model.modalities.end();
    EXPECT_EQ(inputs.make_image != nullptr, takes_images);
  }
}

// The same config.json is the same family to all of them, by its architecture and by its type alone.
TEST(Families, AreFoundByTheSameNames) {
  for (const InputFamily& family : input_families()) {
    SCOPED_TRACE(family.model_type);
    ModelConfig by_type;
    by_type.model_type = std::string(family.model_type);
    ModelConfig by_architecture;
    by_architecture.architectures = {"Unknown", std::string(family.architecture)};
    by_architecture.model_type = "another";
    for (const ModelConfig& config : {by_type, by_architecture}) {
      EXPECT_EQ(find_input_family(config), &family);
      const std::optional<FamilyTraits> model = family_of(config);
      ASSERT_TRUE(model.has_value());
      EXPECT_EQ(model->model_type, family.model_type);
    }
  }
  ModelConfig unknown;
  unknown.model_type = "bart";
  unknown.architectures = {"BartModel"};
  EXPECT_EQ(find_input_family(unknown), nullptr) << "an architecture that is named counts alone";
  EXPECT_FALSE(family_of(unknown).has_value());
}

// A folder without a tokenizer.json has a tokenizer by its model's type. Moonshine, BLIP, Qwen2-VL and Mllama are
// published with one; a composite model's is its decoder's, which tokenizer_config.json names (as Pix2Struct's does).
TEST(Families, HaveATokenizerByTheirType) {
  for (const FamilyTraits& model : family_traits()) {
    TokenizerHints hints;
    hints.model_type = std::string(model.model_type);
    constexpr std::string_view kApart[] = {
        "moonshine", "vision-encoder-decoder", "blip", "pix2struct", "qwen2_vl", "qwen2_5_vl", "mllama"};
    const bool is_apart = std::ranges::find(kApart, model.model_type) != std::end(kApart);
    EXPECT_EQ(find_tokenizer_kind({}, hints) == TokenizerKind::kUnknown, is_apart) << model.model_type;
  }
}

}  // namespace
}  // namespace transept
