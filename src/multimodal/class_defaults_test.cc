#include "multimodal/class_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "core/generation_config.h"
#include "multimodal/input_families.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestFolder;

StatusOr<ModelConfig> load(std::string_view config) {
  const TestFolder dir;
  dir.write("config.json", config);
  return load_family_config(dir.path());
}

// Salesforce/blip-image-captioning-*: generate() is given text_config's bos and sep.
TEST(ClassDefaults, BlipStartsAtBosAndEndsAtSep) {
  const auto config = load(R"({"model_type": "blip", "eos_token_id": 5, "text_config":
      {"vocab_size": 9, "hidden_size": 32, "bos_token_id": 8, "eos_token_id": 2, "sep_token_id": 3, "pad_token_id": 1}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->decoder_start_token_id, 8);
  EXPECT_EQ(config->bos_token_id, 8);
  EXPECT_EQ(config->pad_token_id, 1);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(3)) << "not the end of either object";
  EXPECT_TRUE(config->fixes_special_ids);
  EXPECT_EQ(config->width, 32);
}

TEST(ClassDefaults, OfBlipAreBlipTextConfigs) {
  for (const char* text :
       {R"({"model_type": "blip"})", R"({"model_type": "blip", "text_config": {}})",
        R"({"architectures": ["BlipForConditionalGeneration"], "text_config": {"num_hidden_layers": 12}})"}) {
    const auto config = load(text);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->vocab_size, 30524);
    EXPECT_EQ(config->decoder_vocab_size, 30524);
    EXPECT_EQ(config->width, 768);
    EXPECT_EQ(config->decoder_start_token_id, 30522);
    EXPECT_THAT(config->eos_token_ids, ElementsAre(102));
    EXPECT_EQ(config->pad_token_id, 0);
  }
}

TEST(ClassDefaults, OfPix2StructFillWhatFilesLeaveOut) {
  const auto nothing = load(R"({"model_type": "pix2struct"})");
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_EQ(nothing->vocab_size, 50244);
  EXPECT_EQ(nothing->width, 768);
  EXPECT_EQ(nothing->decoder_start_token_id, 0);
  EXPECT_EQ(nothing->pad_token_id, 0);
  EXPECT_THAT(nothing->eos_token_ids, ElementsAre(1));
  const auto all = load(R"({"model_type": "pix2struct", "text_config":
      {"vocab_size": 9, "hidden_size": 16, "decoder_start_token_id": 4, "pad_token_id": 5, "eos_token_id": 6}})");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->vocab_size, 9);
  EXPECT_EQ(all->decoder_start_token_id, 4);
  EXPECT_EQ(all->pad_token_id, 5);
  EXPECT_THAT(all->eos_token_ids, ElementsAre(6));
  EXPECT_FALSE(all->fixes_special_ids) << "generation_config.json may say something else";
}

TEST(ClassDefaults, AreRefusedByFileAndField) {
  const auto message = [](std::string_view config) { return error_message(load(config).status()); };
  const std::string_view file = "config.json: text_config: ";
  EXPECT_THAT(message(R"({"model_type": "blip", "text_config": {"sep_token_id": 30524}})"),
              HasSubstr(str_cat(file, "sep_token_id: id 30524 is outside the vocabulary of 30524")));
  EXPECT_THAT(message(R"({"model_type": "blip", "text_config": {"vocab_size": 200}})"),
              HasSubstr(str_cat(file, "bos_token_id: id 30522 (the default) is outside the vocabulary of 200")));
  EXPECT_THAT(message(R"({"model_type": "blip", "text_config": {"sep_token_id": "[SEP]"}})"),
              HasSubstr(str_cat(file, "sep_token_id")));
  EXPECT_THAT(message(R"({"model_type": "blip", "text_config": {"hidden_size": 0}})"),
              HasSubstr(str_cat(file, "hidden_size")));
  EXPECT_THAT(message(R"({"model_type": "pix2struct", "text_config": {"vocab_size": 1}})"),
              HasSubstr(str_cat(file, "eos_token_id: id 1 (the default) is outside")));
}

TEST(ClassDefaults, OtherFamiliesHaveNone) {
  const auto bart = load(R"({"model_type": "bart", "vocab_size": 9})");
  ASSERT_TRUE(bart.ok()) << bart.status();
  EXPECT_EQ(bart->decoder_start_token_id, std::nullopt);
  EXPECT_FALSE(bart->fixes_special_ids);
}

}  // namespace
}  // namespace transept
