// Tokenizers of every supported shape against the answers of Hugging Face's tokenizers library, with nothing but this
// repository: testdata/ was made by tools/make_tokenizer_fixtures.py.
#include <gtest/gtest.h>

#include "text/families/load_tokenizer.h"
#include "text/families/tokenizer_testing.h"

namespace transept {
namespace {

void expect_answers(const Tokenizer& tokenizer, const Json& fixture) {
  for (const Json& pair : member(fixture, "encode").as_array()) {
    const std::string& text = pair.as_array()[0].as_string();
    const auto ids = tokenizer.encode(text, {.add_special_tokens = false});
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, ids_of(pair.as_array()[1])) << text;
  }
  const Json::Array& special = member(fixture, "special").as_array();
  const auto ids = tokenizer.encode(special[0].as_string(), {});
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, ids_of(special[1]));
  for (const Json& pair : member(fixture, "decode").as_array()) {
    EXPECT_EQ(tokenizer.decode(ids_of(pair.as_array()[0]), /*skip_special_tokens=*/true),
              pair.as_array()[1].as_string())
        << pair.dump();
  }
}

class FixtureTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FixtureTest, TokenizerJsonGivesTheLibrarysAnswers) {
  const std::vector<Json> fixtures = read_fixtures(GetParam());
  ASSERT_GT(fixtures.size(), 10u);
  for (const Json& fixture : fixtures) {
    const std::string& name = member(fixture, "name").as_string();
    SCOPED_TRACE(name);
    const std::unique_ptr<Tokenizer> tokenizer = make_json_fixture(fixtures, name);
    ASSERT_NE(tokenizer, nullptr);
    expect_answers(*tokenizer, fixture);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, FixtureTest, ::testing::Values("tokenizers.jsonl", "sentencepiece.jsonl"));

TEST(FolderFixtureTest, FoldersWithoutTokenizerJsonGiveTheLibrarysAnswers) {
  const Json model = member(tokenizer_json(read_fixtures("tokenizers.jsonl"), "gpt2"), "model");
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : member(model, "merges").as_array()) {
    merges += str_cat(merge.as_array()[0].as_string(), " ", merge.as_array()[1].as_string(), "\n");
  }
  const std::vector<Json> fixtures = read_fixtures("folders.jsonl");
  ASSERT_GT(fixtures.size(), 3u);
  for (const Json& fixture : fixtures) {
    SCOPED_TRACE(member(fixture, "name").as_string());
    TokenizerFiles files;
    files.vocab_json = member(model, "vocab").dump();
    files.merges_txt = merges;
    TokenizerHints hints;
    for (const auto& [name, text] : member(fixture, "files").as_object()) {
      if (name == "config.json") hints.model_type = member(*Json::parse(text.as_string()), "model_type").as_string();
      if (name == "added_tokens.json") files.added_tokens_json = text.as_string();
      if (name == "special_tokens_map.json") files.special_tokens_map_json = text.as_string();
      if (name == "tokenizer_config.json") files.tokenizer_config_json = text.as_string();
    }
    const auto tokenizer = make_tokenizer(files, hints);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    expect_answers(**tokenizer, fixture);
  }
}

}  // namespace
}  // namespace transept
