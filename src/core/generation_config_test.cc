// generation_config.json: precedence over config.json, ranges, and the list of what is not supported.
#include "core/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "base/source_dir_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestFolder;

constexpr std::string_view kNone = "none";

StatusOr<GenerationConfig> load(std::string_view generation, std::string_view config = R"({"model_type": "bart",
    "vocab_size": 100, "eos_token_id": 2})") {
  const TestFolder dir;
  dir.write("config.json", config);
  if (generation != kNone) dir.write("generation_config.json", generation);
  const auto model = ModelConfig::load(dir.path());
  if (!model.ok()) return model.status();
  return GenerationConfig::load(dir.path(), *model);
}

TEST(GenerationConfig, ReadsEveryField) {
  const auto config = load(R"({"max_length": 28, "min_length": 10, "max_new_tokens": 7, "min_new_tokens": 3,
      "do_sample": true, "temperature": 0.5, "top_k": 9, "top_p": 0.75, "min_p": 0.25, "repetition_penalty": 1.5,
      "no_repeat_ngram_size": 3, "encoder_no_repeat_ngram_size": 4, "num_beams": 5, "num_return_sequences": 2,
      "length_penalty": 2.0, "early_stopping": "never", "forced_bos_token_id": 0, "forced_eos_token_id": [2, 3],
      "suppress_tokens": [4, 5], "begin_suppress_tokens": [6], "bad_words_ids": [[7], [8, 9]],
      "renormalize_logits": true, "eos_token_id": 11, "bos_token_id": 12, "pad_token_id": 13,
      "decoder_start_token_id": 14, "transformers_version": "4.26.0"})");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->max_length, 28);
  EXPECT_EQ(config->min_length, 10);
  EXPECT_EQ(config->max_new_tokens, 7);
  EXPECT_EQ(config->min_new_tokens, 3);
  EXPECT_TRUE(config->do_sample);
  EXPECT_EQ(config->temperature, 0.5f);
  EXPECT_EQ(config->top_k, 9);
  EXPECT_EQ(config->top_p, 0.75f);
  EXPECT_EQ(config->min_p, 0.25f);
  EXPECT_EQ(config->repetition_penalty, 1.5f);
  EXPECT_EQ(config->no_repeat_ngram_size, 3);
  EXPECT_EQ(config->encoder_no_repeat_ngram_size, 4);
  EXPECT_EQ(config->num_beams, 5);
  EXPECT_EQ(config->num_return_sequences, 2);
  EXPECT_EQ(config->length_penalty, 2.0f);
  EXPECT_EQ(config->early_stopping, SamplingParams::EarlyStopping::kNever);
  EXPECT_EQ(config->forced_bos_token_id, 0);
  EXPECT_THAT(config->forced_eos_token_ids, ElementsAre(2, 3));
  EXPECT_THAT(config->suppress_tokens, ElementsAre(4, 5));
  EXPECT_THAT(config->begin_suppress_tokens, ElementsAre(6));
  EXPECT_THAT(config->bad_words_ids, ElementsAre(ElementsAre(7), ElementsAre(8, 9)));
  EXPECT_TRUE(config->renormalize_logits);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(11));
  EXPECT_EQ(config->bos_token_id, 12);
  EXPECT_EQ(config->pad_token_id, 13);
  EXPECT_EQ(config->decoder_start_token_id, 14);
  EXPECT_EQ(config->source, "generation_config.json");
  EXPECT_TRUE(config->unsupported.empty());
}

TEST(GenerationConfig, DefaultsAreHuggingFaces) {
  const auto config = load("{}");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->max_length, std::nullopt);
  EXPECT_FALSE(config->do_sample);
  EXPECT_EQ(config->num_beams, 1);
  EXPECT_EQ(config->temperature, 1.0f);
  EXPECT_EQ(config->top_p, 1.0f);
  EXPECT_EQ(config->length_penalty, 1.0f);
  EXPECT_EQ(config->top_k, 0);
  // transformers samples among 50 where the file asks for sampling and names no top_k.
  EXPECT_EQ(load(R"({"do_sample": true})")->top_k, 50);
  EXPECT_EQ(load(R"({"do_sample": true, "top_k": 0})")->top_k, 0);
}

TEST(GenerationConfig, LegacyKeysHoldOnlyWithoutAGenerationConfig) {
  const char* legacy = R"({"model_type": "bart", "vocab_size": 100, "num_beams": 4, "max_length": 142,
      "eos_token_id": 2, "bos_token_id": 0, "decoder_start_token_id": 2, "num_beam_groups": 2})";
  const auto alone = load(kNone, legacy);
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_EQ(alone->num_beams, 4);
  EXPECT_EQ(alone->max_length, 142);
  EXPECT_THAT(alone->eos_token_ids, ElementsAre(2));
  EXPECT_EQ(alone->source, "config.json");
  EXPECT_THAT(alone->unsupported, ElementsAre("num_beam_groups: 2"));

  const auto both = load(R"({"eos_token_id": [3, 4], "max_length": 20})", legacy);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->num_beams, 1);
  EXPECT_EQ(both->max_length, 20);
  EXPECT_THAT(both->eos_token_ids, ElementsAre(3, 4));
  EXPECT_TRUE(both->unsupported.empty());
  // What only config.json says about special tokens still holds.
  EXPECT_EQ(both->bos_token_id, 0);
  EXPECT_EQ(both->decoder_start_token_id, 2);
}

// GenerationConfig.from_model_config: the top level's ids, then those of the decoder's object.
TEST(GenerationConfig, IdsOfACompositeModelAreItsOwnThenItsDecoders) {
  const char* composite = R"({"model_type": "vision-encoder-decoder", "pad_token_id": 1, "eos_token_id": null,
      "decoder": {"vocab_size": 9, "eos_token_id": [2, 8], "pad_token_id": 7, "decoder_start_token_id": 4}})";
  const auto alone = load(kNone, composite);
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_THAT(alone->eos_token_ids, ElementsAre(2, 8));
  EXPECT_EQ(alone->pad_token_id, 1);
  EXPECT_EQ(alone->decoder_start_token_id, 4);
  EXPECT_EQ(alone->bos_token_id, std::nullopt);
  const auto both = load(R"({"decoder_start_token_id": 5, "eos_token_id": 3})", composite);
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(both->decoder_start_token_id, 5);
  EXPECT_THAT(both->eos_token_ids, ElementsAre(3));
  EXPECT_THAT(error_message(load(R"({"eos_token_id": 9})", composite).status()),
              HasSubstr("generation_config.json: eos_token_id"));
}

// Those that the family's class gives: where no file has any, or over every file.
TEST(GenerationConfig, IdsOfAClassFillInOrHold) {
  const TestFolder dir;
  dir.write("config.json", R"({"model_type": "blip", "text_config": {"vocab_size": 9, "eos_token_id": 2}})");
  dir.write("generation_config.json", R"({"eos_token_id": 3, "decoder_start_token_id": 5})");
  ModelConfig config = ModelConfig::load(dir.path()).value();
  config.eos_token_ids = {7};
  config.bos_token_id = config.decoder_start_token_id = 8;
  const auto filled = GenerationConfig::load(dir.path(), config);
  ASSERT_TRUE(filled.ok()) << filled.status().message();
  EXPECT_THAT(filled->eos_token_ids, ElementsAre(3));
  EXPECT_EQ(filled->decoder_start_token_id, 5);
  EXPECT_EQ(filled->bos_token_id, 8);
  config.fixes_special_ids = true;
  const auto held = GenerationConfig::load(dir.path(), config);
  ASSERT_TRUE(held.ok()) << held.status().message();
  EXPECT_THAT(held->eos_token_ids, ElementsAre(7));
  EXPECT_EQ(held->decoder_start_token_id, 8);
}

// Florence-2's text_config holds them.
TEST(GenerationConfig, WithoutTheFileATextModelsFieldsStandBehindTheTopLevels) {
  const char* composite = R"({"model_type": "florence2", "num_beams": 2, "max_length": null,
      "text_config": {"vocab_size": 9, "num_beams": 3, "no_repeat_ngram_size": 3, "early_stopping": true,
                      "forced_bos_token_id": 0, "max_length": 20, "eos_token_id": 2}})";
  const auto alone = load(kNone, composite);
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_EQ(alone->num_beams, 2);
  EXPECT_EQ(alone->no_repeat_ngram_size, 3);
  EXPECT_EQ(alone->early_stopping, SamplingParams::EarlyStopping::kTrue);
  EXPECT_EQ(alone->forced_bos_token_id, 0);
  EXPECT_EQ(alone->max_length, 20);
  EXPECT_THAT(alone->eos_token_ids, ElementsAre(2));
  const auto both = load(R"({"num_beams": 4})", composite);
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(both->num_beams, 4);
  EXPECT_EQ(both->no_repeat_ngram_size, 0);
  EXPECT_EQ(both->forced_bos_token_id, std::nullopt);
}

TEST(GenerationConfig, ListsWhatIsNotSupported) {
  const auto config = load(R"({"num_beam_groups": 2, "diversity_penalty": 0.5, "guidance_scale": 1.0, "typical_p": 1,
      "penalty_alpha": null, "remove_invalid_values": false, "forced_decoder_ids": [[1, 50259]], "stop_strings": [],
      "constraints": null, "encoder_repetition_penalty": 1.2, "some_new_field": 5})");
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(config->unsupported, ElementsAre("num_beam_groups: 2", "diversity_penalty: 0.5",
                                               "encoder_repetition_penalty: 1.2", "forced_decoder_ids: [[1, 50259]]"));
}

TEST(GenerationConfig, RefusesDamageByFileAndField) {
  struct Case {
    const char *text, *field;
  };
  const Case cases[] = {
      {R"({"max_length": 0})", "max_length"},
      {R"({"max_length": 4294967296})", "max_length"},
      {R"({"min_length": -1})", "min_length"},
      {R"({"max_new_tokens": "9"})", "max_new_tokens"},
      {R"({"min_new_tokens": 1.5})", "min_new_tokens"},
      {R"({"do_sample": 1})", "do_sample"},
      {R"({"temperature": -1})", "temperature"},
      {R"({"temperature": "1"})", "temperature"},
      {R"({"top_k": -1})", "top_k"},
      {R"({"top_p": 0})", "top_p"},
      {R"({"top_p": 1.5})", "top_p"},
      {R"({"min_p": 2})", "min_p"},
      {R"({"repetition_penalty": 0})", "repetition_penalty"},
      {R"({"no_repeat_ngram_size": -1})", "no_repeat_ngram_size"},
      {R"({"encoder_no_repeat_ngram_size": []})", "encoder_no_repeat_ngram_size"},
      {R"({"num_beams": 0})", "num_beams"},
      {R"({"num_beams": 65})", "num_beams"},
      {R"({"num_return_sequences": 17})", "num_return_sequences"},
      {R"({"length_penalty": 1e9})", "length_penalty"},
      {R"({"early_stopping": "maybe"})", "early_stopping"},
      {R"({"early_stopping": 1})", "early_stopping"},
      {R"({"forced_bos_token_id": 100})", "forced_bos_token_id"},
      {R"({"forced_eos_token_id": [1, 100]})", "forced_eos_token_id"},
      {R"({"suppress_tokens": [-1]})", "suppress_tokens"},
      {R"({"begin_suppress_tokens": ["a"]})", "begin_suppress_tokens"},
      {R"({"bad_words_ids": [3]})", "bad_words_ids"},
      {R"({"bad_words_ids": [[]]})", "bad_words_ids"},
      {R"({"bad_words_ids": [[100]]})", "bad_words_ids"},
      {R"({"bad_words_ids": {}})", "bad_words_ids"},
      {R"({"renormalize_logits": "yes"})", "renormalize_logits"},
      {R"({"eos_token_id": 100})", "eos_token_id"},
      {R"({"bos_token_id": [0]})", "bos_token_id"},
  };
  for (const Case& c : cases) {
    const auto config = load(c.text);
    ASSERT_FALSE(config.ok()) << c.text;
    EXPECT_EQ(error_param(config.status()), c.field) << c.text;
    EXPECT_THAT(error_message(config.status()), HasSubstr(str_cat("generation_config.json: ", c.field, ": ")));
  }
  EXPECT_THAT(error_message(load("{").status()), HasSubstr("generation_config.json"));
  EXPECT_THAT(error_message(load("[]").status()), HasSubstr("expected an object"));
}

TEST(GenerationConfig, ReadsTheSharedGoldens) {
  const std::string root = source_dir() + "/../shared/golden/text/";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no ../shared";
  for (const auto& folder : std::filesystem::directory_iterator(root)) {
    const auto model = ModelConfig::load(folder.path().string());
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto config = GenerationConfig::load(folder.path().string(), *model);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_TRUE(config->unsupported.empty()) << folder.path();
    EXPECT_FALSE(config->eos_token_ids.empty()) << folder.path();
  }
}

}  // namespace
}  // namespace transept
