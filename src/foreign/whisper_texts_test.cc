// What is made of a vocabulary and sizes alone, beside the files of a published Whisper.
#include "foreign/whisper_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/source_dir_testing.h"
#include "core/config_file.h"
#include "foreign/bpe_merges.h"
#include "foreign/whisper_alignment.h"
#include "text/families/load_tokenizer.h"
#include "text/subword/byte_level.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(BpeMerges, AreThoseOfLowerRanks) {
  const std::vector<std::string_view> tokens = {"a", "b", "c", "ab", "abc", "bc", "cab", "xyz", "abab"};
  // Of "abc" the merge "bc" has a higher rank; bytes of "xyz" have no tokens.
  EXPECT_THAT(bpe_merges(tokens), ElementsAre(Pair(0, 1), Pair(3, 2), Pair(1, 2), Pair(2, 3), Pair(3, 3)));
}

TEST(BpeMerges, OfATrainedVocabularyAreItsOwn) {
  const std::string folder = source_dir() + "/tests/models/whisper-transcribes";
  const Json file = *read_json_object(folder + "/tokenizer.json");
  const Json& model = *file.find("model");
  std::vector<std::string> tokens(model.find("vocab")->as_object().size());
  for (const auto& [text, id] : model.find("vocab")->as_object()) {
    append_token_bytes(text, tokens.at(static_cast<size_t>(id.as_int())));
  }
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  const Json::Array& wanted = model.find("merges")->as_array();
  const auto merges = bpe_merges(views);
  ASSERT_EQ(merges.size(), wanted.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    std::string text;
    append_byte_characters(tokens[static_cast<size_t>(merges[i].first)], text);
    text += " ";
    append_byte_characters(tokens[static_cast<size_t>(merges[i].second)], text);
    const bool is_pair = wanted[i].is_array();  // as newer files write it
    EXPECT_EQ(text, is_pair ? str_cat(wanted[i].as_array()[0].as_string(), " ", wanted[i].as_array()[1].as_string())
                            : wanted[i].as_string());
  }
}

TEST(WhisperIds, FollowFromTheVocabulary) {
  const WhisperIds english = *whisper_ids(51864), first = *whisper_ids(51865), last = *whisper_ids(51866);
  EXPECT_EQ(english.end_of_text, 50256);
  EXPECT_EQ(english.num_languages, 99);
  EXPECT_FALSE(english.is_multilingual);
  EXPECT_EQ(english.no_timestamps(), 50362);
  EXPECT_EQ(first.end_of_text, 50257);
  EXPECT_EQ(first.num_languages, 99);
  EXPECT_EQ(first.transcribe(), 50359);
  EXPECT_EQ(first.no_timestamps(), 50363);
  EXPECT_EQ(last.num_languages, 100);
  EXPECT_EQ(last.no_timestamps(), 50364);
  for (const int32_t other : {0, 51863, 51867, 50257}) {
    EXPECT_THAT(error_message(whisper_ids(other).status()), HasSubstr("is no Whisper's"));
  }
}

TEST(WhisperAlignment, IsOfTheModelWithTheseSizes) {
  EXPECT_THAT(whisper_alignment_heads(51866, 4, 20),
              ElementsAre(Pair(2, 4), Pair(2, 11), Pair(3, 3), Pair(3, 6), Pair(3, 11), Pair(3, 14)));
  EXPECT_THAT(whisper_alignment_heads(51865, 2, 2), ElementsAre(Pair(1, 0), Pair(1, 1)));
  EXPECT_THAT(whisper_alignment_heads(51865, 3, 1), ElementsAre(Pair(1, 0), Pair(2, 0)));
}

TEST(WhisperTexts, WantTheWholeVocabulary) {
  const WhisperSizes sizes{.vocab = 51865, .mels = 80, .audio_positions = 100, .audio_width = 8, .text_width = 8};
  EXPECT_THAT(error_message(whisper_texts(sizes, {}).status()), HasSubstr("0 tokens of the 50257"));
  WhisperSizes uneven = sizes;
  uneven.text_width = 16;
  EXPECT_THAT(error_message(whisper_texts(uneven, {}).status()), HasSubstr("differs from n_text_state"));
  WhisperSizes broken = sizes;
  broken.audio_positions = 70;
  EXPECT_THAT(error_message(whisper_texts(broken, {}).status()), HasSubstr("n_audio_ctx: 70 positions"));
}

// From the tokens of openai/whisper-tiny alone.
TEST(WhisperTexts, AreThoseOfThePublishedModel) {
  const std::string folder = source_dir() + "/../shared/models/whisper-tiny";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared";
  const Json published = *read_json_object(folder + "/tokenizer.json");
  std::vector<std::string> tokens(50257);
  for (const auto& [text, id] : published.find("model")->find("vocab")->as_object()) {
    if (id.as_int() < 50257) append_token_bytes(text, tokens.at(static_cast<size_t>(id.as_int())));
  }
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  const WhisperSizes sizes{.vocab = 51865,
                           .mels = 80,
                           .audio_positions = 1500,
                           .audio_width = 384,
                           .audio_heads = 6,
                           .audio_layers = 4,
                           .text_positions = 448,
                           .text_width = 384,
                           .text_heads = 6,
                           .text_layers = 4};
  const auto texts = whisper_texts(sizes, views);
  ASSERT_TRUE(texts.ok()) << texts.status();
  // The same keys where both have them.
  for (const char* name : {"config.json", "generation_config.json", "preprocessor_config.json"}) {
    const Json made = *Json::parse(texts->at(name)), theirs = *read_json_object(folder + "/" + name);
    for (const auto& [key, value] : made.as_object()) {
      const Json* other = theirs.find(key);
      if (other == nullptr) continue;
      if (key == "lang_to_id") {
        ASSERT_EQ(value.as_object().size(), other->as_object().size());
        for (const auto& [language, id] : value.as_object())
          EXPECT_EQ(id.as_int(), other->find(language)->as_int()) << language;
      } else if (key == "task_to_id") {
        for (const auto& [task, id] : value.as_object()) EXPECT_EQ(id.as_int(), other->find(task)->as_int()) << task;
      } else {
        EXPECT_EQ(value.dump(), other->dump()) << name << ": " << key;
      }
    }
  }
  const Json made = *Json::parse(texts->at("tokenizer.json"));
  EXPECT_EQ(made.find("model")->find("merges")->dump(), published.find("model")->find("merges")->dump());
  const auto ours = load_tokenizer(ModelFolder("m.bin", "", *texts), {.model_type = "whisper"});
  const auto reference = load_tokenizer(folder, {.model_type = "whisper"});
  ASSERT_TRUE(ours.ok() && reference.ok()) << ours.status() << reference.status();
  for (const char* text :
       {"Hello, world!", " Größe 12,5 mm", "日本語のテキスト", "<|transcribe|> a<|0.02|>b", "\n\n  x", "🙂♪"}) {
    EXPECT_EQ(*(*ours)->encode(text, {.add_special_tokens = false}),
              *(*reference)->encode(text, {.add_special_tokens = false}))
        << text;
  }
  for (int32_t id = 0; id < 51865; ++id) {
    if (id != 50362) {  // "<|nocaptions|>" in older files
      EXPECT_EQ((*ours)->token_to_string(id), (*reference)->token_to_string(id)) << id;
    }
    EXPECT_EQ((*ours)->is_special(id), (*reference)->is_special(id)) << id;
  }
}

}  // namespace
}  // namespace transept
