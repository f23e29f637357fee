// config.json: what is read, and that every damaged number is refused with file and field.
#include "core/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "base/source_dir_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestFolder;

StatusOr<ModelConfig> load(std::string_view config) {
  const TestFolder dir;
  dir.write("config.json", config);
  return ModelConfig::load(dir.path());
}

TEST(ModelConfig, ReadsTheCommonFields) {
  const auto config = load(R"({"model_type": "bart", "architectures": ["BartForConditionalGeneration"],
      "vocab_size": 560.0, "bos_token_id": 0, "pad_token_id": null, "eos_token_id": [2, 3],
      "decoder_start_token_id": 2, "d_model": 32})");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->model_type, "bart");
  EXPECT_THAT(config->architectures, ElementsAre("BartForConditionalGeneration"));
  EXPECT_EQ(config->vocab_size, 560);
  EXPECT_EQ(config->bos_token_id, 0);
  EXPECT_EQ(config->pad_token_id, std::nullopt);
  EXPECT_EQ(config->decoder_start_token_id, 2);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(2, 3));
  EXPECT_EQ(config->raw.find("d_model")->as_int(), 32);
}

// Marian may keep a vocabulary for each side: what the decoder begins and ends with lies in its own.
TEST(ModelConfig, TheDecodersIdsLieInItsOwnVocabulary) {
  constexpr const char* kConfig = R"({"model_type": "marian", "vocab_size": 5, "decoder_vocab_size": 9,
      "share_encoder_decoder_embeddings": $, "eos_token_id": 8})";
  const auto with = [&](std::string_view value) {
    std::string config = kConfig;
    return load(config.replace(config.find('$'), 1, value));
  };
  const auto separate = with("false");
  ASSERT_TRUE(separate.ok()) << separate.status().message();
  EXPECT_EQ(separate->vocab_size, 5);
  EXPECT_EQ(separate->decoder_vocab_size, 9);
  EXPECT_THAT(error_message(with("true").status()), HasSubstr("eos_token_id: id 8 is outside the vocabulary of 5"));
}

// VisionEncoderDecoderModel has an object for each side, and ids at the top or in the decoder's.
TEST(ModelConfig, ACompositeModelIsAsWideAsItsDecoder) {
  const auto config = load(R"({"model_type": "vision-encoder-decoder", "vocab_size": 7, "eos_token_id": 3,
      "decoder_start_token_id": null, "encoder": {"hidden_size": 48, "bos_token_id": 1, "pad_token_id": 1},
      "decoder": {"vocab_size": 9, "n_embd": 32, "eos_token_id": 8, "decoder_start_token_id": 8, "pad_token_id": 6}})");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->vocab_size, 9);
  EXPECT_EQ(config->decoder_vocab_size, 9);
  EXPECT_EQ(config->width, 32);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(3)) << "the top level goes first";
  EXPECT_EQ(config->decoder_start_token_id, 8);
  EXPECT_EQ(config->pad_token_id, 6);
  EXPECT_EQ(config->bos_token_id, std::nullopt) << "an encoder's ids mean nothing";
  ASSERT_NE(config->decoder(), nullptr);
  EXPECT_EQ(config->decoder()->find("n_embd")->as_int(), 32);
  EXPECT_EQ(load(R"({"model_type": "bart"})")->decoder(), nullptr);
}

TEST(ModelConfig, ACompositeModelsDecoderMayBeATextConfig) {
  const auto config = load(R"({"model_type": "blip", "vision_config": {"hidden_size": 48},
      "text_config": {"vocab_size": 9, "hidden_size": 32, "bos_token_id": 8, "eos_token_id": 2}})");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->decoder_key(), "text_config");
  EXPECT_EQ(config->decoder_vocab_size, 9);
  EXPECT_EQ(config->width, 32);
  EXPECT_EQ(config->bos_token_id, 8);
  EXPECT_THAT(
      std::string(
          load(R"({"model_type": "blip", "text_config": {"vocab_size": 9, "eos_token_id": 9}})").status().message()),
      HasSubstr("config.json: text_config: eos_token_id"));
  EXPECT_EQ(load(R"({"model_type": "bart", "text_config": 3})")->decoder(), nullptr);
}

// Florence-2's object of the text model is its decoder's, too.
TEST(ModelConfig, ATextModelsObjectIsTheDecoders) {
  const auto config =
      load(R"({"model_type": "florence2", "vocab_size": 7, "text_config": {"vocab_size": 9, "d_model": 16,
      "eos_token_id": 2}, "vision_config": {"eos_token_id": 3}})");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->vocab_size, 9);
  EXPECT_EQ(config->width, 16);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(2));
  EXPECT_EQ(config->decoder_key(), "text_config");
  EXPECT_EQ(load(R"({"model_type": "bart"})")->decoder_key(), "");
  EXPECT_THAT(error_message(load(R"({"model_type": "x", "text_config": {"vocab_size": 0}})").status()),
              HasSubstr("config.json: text_config: vocab_size: "));
}

TEST(ModelConfig, ACompositeModelIsRefusedByFileObjectAndField) {
  for (const auto& [fields, field] : {std::pair(R"("vocab_size": 0)", "vocab_size"),
                                      {R"("vocab_size": "9")", "vocab_size"},
                                      {R"("vocab_size": 9, "eos_token_id": 9)", "eos_token_id"},
                                      {R"("vocab_size": 9, "bos_token_id": -1)", "bos_token_id"},
                                      {R"("pad_token_id": "x")", "pad_token_id"}}) {
    const auto config = load(str_cat(R"({"model_type": "vision-encoder-decoder", "decoder": {)", fields, "}}"));
    EXPECT_THAT(error_message(config.status()), HasSubstr(str_cat("config.json: decoder: ", field, ": "))) << fields;
    EXPECT_EQ(error_param(config.status()), field);
  }
  const auto outside = load(R"({"model_type": "x", "pad_token_id": 9, "decoder": {"vocab_size": 9}})");
  EXPECT_THAT(error_message(outside.status()), HasSubstr("config.json: pad_token_id: id 9 is outside"));
}

TEST(ModelConfig, AFolderWithATokenizerAloneNeedsOnlyTheType) {
  const auto config = load(R"({"model_type": "t5"})");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->vocab_size, 0);
}

TEST(ModelConfig, AnArchitectureMayStandForTheType) {
  const auto config = load(R"({"architectures": ["UMT5ForConditionalGeneration"]})");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->model_type, "");
}

TEST(ModelConfig, RefusesDamageByFileAndField) {
  struct Case {
    const char *config, *field;
  };
  const Case cases[] = {
      {R"({})", "model_type"},
      {R"({"model_type": 5})", "model_type"},
      {R"({"architectures": []})", "model_type"},
      {R"({"model_type": "x", "vocab_size": 0})", "vocab_size"},
      {R"({"model_type": "x", "vocab_size": -1})", "vocab_size"},
      {R"({"model_type": "x", "vocab_size": 1e30})", "vocab_size"},
      {R"({"model_type": "x", "vocab_size": 2.5})", "vocab_size"},
      {R"({"model_type": "x", "vocab_size": "560"})", "vocab_size"},
      {R"({"model_type": "x", "vocab_size": 5, "bos_token_id": 5})", "bos_token_id"},
      {R"({"model_type": "x", "vocab_size": 5, "share_encoder_decoder_embeddings": false, "decoder_vocab_size": 0})",
       "decoder_vocab_size"},
      {R"({"model_type": "x", "vocab_size": 5, "share_encoder_decoder_embeddings": 1})",
       "share_encoder_decoder_embeddings"},
      {R"({"model_type": "x", "vocab_size": 5, "eos_token_id": [1, 5]})", "eos_token_id"},
      {R"({"model_type": "x", "pad_token_id": -1})", "pad_token_id"},
      {R"({"model_type": "x", "decoder_start_token_id": 2147483648})", "decoder_start_token_id"},
      {R"({"model_type": "x", "eos_token_id": "2"})", "eos_token_id"},
      {R"({"model_type": "x", "eos_token_id": [true]})", "eos_token_id"},
      {R"({"model_type": "x", "architectures": "Bart"})", "architectures"},
      {R"({"model_type": "x", "architectures": [1]})", "architectures"},
  };
  for (const Case& c : cases) {
    const auto config = load(c.config);
    ASSERT_FALSE(config.ok()) << c.config;
    EXPECT_EQ(error_param(config.status()), c.field) << c.config;
    EXPECT_THAT(error_message(config.status()), HasSubstr(str_cat("config.json: ", c.field, ": "))) << c.config;
  }
  for (const char* text : {"", "{", "[]", "5", "{\"model_type\": \"x\"} y", "\xff"}) {
    const auto config = load(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(error_message(config.status()), HasSubstr("config.json")) << text;
  }
  const auto long_list = load(str_cat(R"({"model_type": "x", "eos_token_id": [0)",
                                      [] {
                                        std::string zeros;
                                        for (int i = 0; i < 100'000; ++i) zeros += ",0";
                                        return zeros;
                                      }(),
                                      "]}"));
  EXPECT_THAT(error_message(long_list.status()), HasSubstr("100001 ids are over the 100000"));
  const TestFolder empty;
  EXPECT_THAT(error_message(ModelConfig::load(empty.path()).status()), HasSubstr(empty.path() + "/config.json"));
}

TEST(ConfigReader, ChecksRangesAndTypes) {
  const Json object = *Json::parse(R"({"i": 7, "d": 0.5, "b": true, "s": "x", "n": null, "big": 1e300, "w": 3.0})");
  const ConfigReader reader(object, "f.json");
  EXPECT_EQ(*reader.integer("i", 7, 7), 7);
  EXPECT_EQ(*reader.integer("w", 0, 10), 3);
  EXPECT_EQ(*reader.integer("n", 0, 10, 4), 4);
  EXPECT_EQ(*reader.integer("absent", 0, 10, 5), 5);
  EXPECT_EQ(error_message(reader.integer("absent", 0, 10).status()), "f.json: absent: is missing");
  EXPECT_EQ(error_message(reader.integer("i", 8, 10).status()),
            "f.json: i: expected a whole number from 8 to 10, got 7");
  EXPECT_FALSE(reader.integer("d", 0, 10).ok());
  EXPECT_FALSE(reader.integer("big", 0, 10).ok());
  EXPECT_FALSE(reader.integer("s", 0, 10, 1).ok());
  EXPECT_EQ(*reader.number("d", 0, 1), 0.5);
  EXPECT_EQ(*reader.number("i", 0, 10), 7.0);
  EXPECT_FALSE(reader.number("d", 0.6, 1).ok());
  EXPECT_FALSE(reader.number("b", 0, 1).ok());
  EXPECT_EQ(*reader.boolean("b", false), true);
  EXPECT_EQ(*reader.boolean("n", true), true);
  EXPECT_FALSE(reader.boolean("i", false).ok());
  EXPECT_EQ(*reader.string("s"), "x");
  EXPECT_EQ(*reader.string("n", "y"), "y");
  EXPECT_FALSE(reader.string("n").ok());
  EXPECT_FALSE(reader.string("i", "y").ok());
  EXPECT_EQ(*reader.token_id("n"), std::nullopt);
  EXPECT_EQ(*reader.token_id("w"), 3);
  EXPECT_THAT(*reader.token_ids("i"), ElementsAre(7));
}

TEST(ModelConfig, ReadsEverySharedGolden) {
  const std::string root = source_dir() + "/../shared/golden/";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no ../shared";
  int count = 0;
  for (const char* part : {"text", "tokenizers"}) {
    for (const auto& folder : std::filesystem::directory_iterator(root + part)) {
      if (!std::filesystem::exists(folder.path() / "config.json")) continue;
      const auto config = ModelConfig::load(folder.path().string());
      EXPECT_TRUE(config.ok()) << config.status().message();
      ++count;
    }
  }
  EXPECT_GT(count, 20);
}

}  // namespace
}  // namespace transept
