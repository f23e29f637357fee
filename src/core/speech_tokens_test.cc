// What a folder says of its transcript tokens: generation_config.json, the tokenizer's spellings where that is silent,
// errors that name file and field; and languages by code, name and token.
#include "core/speech_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/folder_testing.h"
#include "core/speech_languages.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestFolder;

using Spellings = std::map<std::string, int32_t, std::less<>>;

StatusOr<SpeechTokens> load(std::string_view generation, const Spellings& spellings = {}, int vocab_size = 51865) {
  const TestFolder dir;
  dir.write("config.json", str_cat(R"({"model_type": "whisper", "vocab_size": )", vocab_size, "}"));
  dir.write("generation_config.json", generation);
  const auto config = ModelConfig::load(dir.path());
  if (!config.ok()) return config.status();
  const auto parsed = GenerationConfig::load(dir.path(), *config);
  if (!parsed.ok()) return parsed.status();
  return SpeechTokens::load(*config, *parsed, [&](std::string_view spelling) -> std::optional<int32_t> {
    const auto found = spellings.find(spelling);
    return found == spellings.end() ? std::nullopt : std::optional(found->second);
  });
}

std::vector<std::string> codes(const SpeechTokens& tokens) {
  std::vector<std::string> codes;
  for (const SpeechTokens::Language& language : tokens.languages) codes.push_back(language.code);
  return codes;
}

constexpr std::string_view kTiny = R"({"is_multilingual": true, "lang_to_id": {"<|de|>": 50261, "<|en|>": 50259},
    "task_to_id": {"transcribe": 50359, "translate": 50358}, "no_timestamps_token_id": 50363,
    "prev_sot_token_id": 50361, "max_initial_timestamp_index": 50})";

TEST(SpeechTokens, AreThoseOfTheFile) {
  // Whatever the tokenizer says.
  const auto tokens = load(kTiny, {{"<|notimestamps|>", 1}, {"<|transcribe|>", 2}, {"<|nospeech|>", 50362}});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(codes(*tokens), ElementsAre("en", "de"));  // by id
  EXPECT_EQ(tokens->transcribe, 50359);
  EXPECT_EQ(tokens->translate, 50358);
  EXPECT_EQ(tokens->no_timestamps, 50363);
  EXPECT_EQ(tokens->timestamp_begin(), 50364);
  EXPECT_EQ(tokens->start_of_previous, 50361);
  EXPECT_EQ(tokens->max_initial_timestamp_index, 50);
  EXPECT_EQ(tokens->no_speech, 50362);
  EXPECT_FALSE(tokens->default_language.has_value());
  EXPECT_FALSE(tokens->default_task.has_value());
  const TimestampRules rules = tokens->rules(50257);
  EXPECT_EQ(rules.timestamp_begin, 50364);
  EXPECT_EQ(rules.no_timestamps_token_id, 50363);
  EXPECT_EQ(rules.eos_token_id, 50257);
  EXPECT_EQ(rules.max_initial_timestamp_index, 50);
}

// Older and fine-tuned checkpoints.
TEST(SpeechTokens, AreTheTokenizersWhereTheFileIsSilent) {
  const auto tokens = load("{}", {{"<|de|>", 50261},
                                  {"<|en|>", 50259},
                                  {"<|xx|>", 50260},
                                  {"<|transcribe|>", 50359},
                                  {"<|translate|>", 50358},
                                  {"<|notimestamps|>", 50363},
                                  {"<|startofprev|>", 50361},
                                  {"<|nocaptions|>", 50362}});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(codes(*tokens), ElementsAre("en", "de"));
  EXPECT_EQ(tokens->transcribe, 50359);
  EXPECT_EQ(tokens->translate, 50358);
  EXPECT_EQ(tokens->no_timestamps, 50363);
  EXPECT_EQ(tokens->start_of_previous, 50361);
  EXPECT_EQ(tokens->no_speech, 50362);  // as the first release spelled it
}

TEST(SpeechTokens, TheTokenizersAreOnlyThoseThatTheModelHasScoresFor) {
  const auto tokens = load(R"({"is_multilingual": true})",
                           {{"<|en|>", 99}, {"<|de|>", 100}, {"<|notimestamps|>", 51864}, {"<|nospeech|>", -1}}, 100);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(codes(*tokens), ElementsAre("en"));
  EXPECT_FALSE(tokens->no_timestamps.has_value());
  EXPECT_FALSE(tokens->timestamp_begin().has_value());
  EXPECT_FALSE(tokens->no_speech.has_value());
}

// The .en vocabularies hold language and task tokens that nothing was trained with.
TEST(SpeechTokens, ModelsOfEnglishAloneHaveNeitherLanguagesNorTasks) {
  const Spellings spellings = {
      {"<|en|>", 50258}, {"<|transcribe|>", 50358}, {"<|translate|>", 50357}, {"<|notimestamps|>", 50362}};
  const auto said = load(R"({"is_multilingual": false, "lang_to_id": {"<|en|>": 50258}})", spellings);
  const auto by_size = load("{}", spellings, 51864);
  for (const auto& tokens : {said, by_size}) {
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_TRUE(tokens->languages.empty());
    EXPECT_FALSE(tokens->transcribe.has_value());
    EXPECT_EQ(tokens->no_timestamps, 50362);
    EXPECT_EQ(tokens->language_token("English", "language").value(), std::nullopt);
    EXPECT_EQ(tokens->task_token("transcribe", "task").value(), std::nullopt);
    const Status language = tokens->language_token("de", "language").status();
    EXPECT_EQ(error_param(language), "language");
    EXPECT_THAT(error_message(language), AllOf(HasSubstr("\"de\""), HasSubstr("English alone")));
    const Status task = tokens->task_token("translate", "task").status();
    EXPECT_EQ(error_param(task), "task");
    EXPECT_THAT(error_message(task), HasSubstr("transcribes only"));
  }
  // What the file says of itself goes before the size of its vocabulary.
  EXPECT_EQ(load(R"({"is_multilingual": true})", spellings, 51864)->languages.size(), 1u);
  EXPECT_EQ(load(R"({"lang_to_id": {"<|en|>": 50258}})", {}, 51864)->languages.size(), 1u);
}

TEST(SpeechTokens, ALanguageNamedTwiceIsOne) {
  const auto tokens = load(R"({"lang_to_id": {"<|en|>": 7, "english": 7, "<|haw|>": 8}})");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(codes(*tokens), ElementsAre("en", "haw"));
}

TEST(SpeechTokens, LanguagesByCodeNameAndToken) {
  const auto tokens = load(kTiny);
  ASSERT_TRUE(tokens.ok());
  for (const std::string_view name : {"de", "DE", "German", "<|de|>", "german"}) {
    EXPECT_EQ(tokens->language_token(name, "language").value(), 50261) << name;
  }
  EXPECT_EQ(tokens->language_of(50261), "de");
  EXPECT_EQ(tokens->language_of(50260), "");
  for (const std::string_view name : {"fr", "", "e", "<||>", "de "}) {
    const Status status = tokens->language_token(name, "language").status();
    EXPECT_EQ(error_param(status), "language") << name;
    EXPECT_THAT(error_message(status), AllOf(HasSubstr(str_cat("\"", name, "\"")), HasSubstr("knows en, de")));
  }
}

TEST(SpeechTokens, TasksByName) {
  const auto tokens = load(kTiny);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->task_token("transcribe", "task").value(), 50359);
  EXPECT_EQ(tokens->task_token("translate", "task").value(), 50358);
  const Status status = tokens->task_token("summarize", "task").status();
  EXPECT_EQ(error_param(status), "task");
  EXPECT_THAT(error_message(status), AllOf(HasSubstr("\"summarize\""), HasSubstr("transcribe, translate")));
}

// As fine-tuned checkpoints write it.
TEST(SpeechTokens, DefaultsOfTheFileInEverySpelling) {
  for (const std::string_view language : {"<|en|>", "english", "en", "English"}) {
    const auto tokens = load(str_cat(R"({"lang_to_id": {"<|en|>": 50259}, "language": ")", language,
                                     R"(", "task": "translate", "task_to_id": {"translate": 50358}})"));
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    ASSERT_TRUE(tokens->default_language.has_value());
    EXPECT_EQ(tokens->language_token(*tokens->default_language, "language").value(), 50259) << language;
    EXPECT_EQ(tokens->task_token(tokens->default_task.value(), "task").value(), 50358);
  }
  const auto absent = load(R"({"language": null, "task": null, "lang_to_id": null, "is_multilingual": null})");
  ASSERT_TRUE(absent.ok()) << absent.status();
  EXPECT_FALSE(absent->default_language.has_value());
}

TEST(SpeechTokens, WhatIsWrongIsNamedWithItsFile) {
  const struct {
    std::string_view file, field, part;
  } cases[] = {
      {R"({"lang_to_id": [1]})", "lang_to_id", "expected an object"},
      {R"({"lang_to_id": {"<|en|>": 100}})", "<|en|>", "from 0 to 99"},
      {R"({"lang_to_id": {"<|en|>": -1}})", "<|en|>", "from 0 to 99"},
      {R"({"lang_to_id": {"<|en|>": "7"}})", "<|en|>", "lang_to_id"},
      {R"({"lang_to_id": {"<|en|>": 7.5}})", "<|en|>", "7.5"},
      {R"({"task_to_id": "transcribe"})", "task_to_id", "expected an object"},
      {R"({"task_to_id": {"transcribe": 1e300}})", "transcribe", "task_to_id"},
      {R"({"no_timestamps_token_id": 100})", "no_timestamps_token_id", "from 0 to 99"},
      {R"({"no_timestamps_token_id": [3]})", "no_timestamps_token_id", "a list"},
      {R"({"prev_sot_token_id": -5})", "prev_sot_token_id", "-5"},
      {R"({"max_initial_timestamp_index": -1})", "max_initial_timestamp_index", "-1"},
      {R"({"max_initial_timestamp_index": 1e12})", "max_initial_timestamp_index", "from 0"},
      {R"({"language": 7})", "language", "expected a string"},
      {R"({"task": ["transcribe"]})", "task", "expected a string"},
      {R"({"is_multilingual": "yes"})", "is_multilingual", "expected true or false"},
  };
  for (const auto& [file, field, part] : cases) {
    const Status status = load(file, {}, 100).status();
    EXPECT_FALSE(status.ok()) << file;
    EXPECT_EQ(error_param(status), field) << file;
    EXPECT_THAT(error_message(status), AllOf(HasSubstr("generation_config.json"), HasSubstr(field), HasSubstr(part)));
  }
  std::string many = R"({"lang_to_id": {)";
  for (int i = 0; i < 10'001; ++i) many += str_cat(i > 0 ? ", " : "", "\"", i, "\": 1");
  EXPECT_THAT(error_message(load(many + "}}", {}, 100).status()), HasSubstr("too many"));
}

// openai-whisper, tokenizer.py: LANGUAGES and TO_LANGUAGE_CODE.
TEST(SpeechLanguages, CodesAndNames) {
  EXPECT_EQ(speech_language_codes().size(), 100u);
  EXPECT_EQ(speech_language_codes().front(), "en");
  EXPECT_EQ(speech_language_codes().back(), "yue");
  for (const std::string_view code : speech_language_codes()) {
    EXPECT_EQ(speech_language_code(speech_language_name(code)), code);
    EXPECT_EQ(speech_language_code(code), code);
  }
  EXPECT_EQ(speech_language_code("Castilian"), "es");
  EXPECT_EQ(speech_language_code("MANDARIN"), "zh");
  EXPECT_EQ(speech_language_code("Haitian Creole"), "ht");
  EXPECT_EQ(speech_language_code("Klingon"), "klingon");
  EXPECT_EQ(speech_language_code("<|>"), "<|>");
  EXPECT_EQ(speech_language_code(""), "");
  EXPECT_EQ(speech_language_name("tlh"), "tlh");
}

}  // namespace
}  // namespace transept
