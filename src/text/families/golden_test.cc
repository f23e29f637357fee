// The reference's answers of the steering repository, where it lies beside this one: every string and every row of ids.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/source_dir_testing.h"
#include "text/detokenizer.h"
#include "text/families/load_tokenizer.h"
#include "text/text_testing.h"

namespace transept {
namespace {

// Beside the repository; TRANSEPT_SHARED says where else.
std::string shared_dir() {
  const char* elsewhere = std::getenv("TRANSEPT_SHARED");
  return elsewhere != nullptr ? elsewhere : str_cat(source_dir(), "/../shared");
}

bool flag(const Json& request, std::string_view key) {
  const Json* value = request.find(key);
  return value == nullptr || value->as_bool();
}

std::string text_of(const Json& request, std::string_view key) {
  const Json* value = request.find(key);
  return value == nullptr ? "" : value->as_string();
}

class GoldenTokenizerTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = str_cat(shared_dir(), "/golden/", GetParam());
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "no ../shared/golden/" << GetParam();
    std::string model = folder_;
    if (const StatusOr<std::string> path = read_file(folder_ + "/model_path.txt"); path.ok()) {
      model = str_cat(folder_, "/", trim(*path));
    }
    const StatusOr<std::string> text = read_file(model + "/config.json");
    ASSERT_TRUE(text.ok()) << text.status();
    const StatusOr<Json> config = Json::parse(*text);
    ASSERT_TRUE(config.ok()) << config.status();
    TokenizerHints hints{.model_type = config->find("model_type")->as_string()};
    if (const Json* named = config->find("tokenizer_class")) hints.tokenizer_class = named->as_string();
    if (const Json* size = config->find("vocab_size")) hints.vocab_size = size->as_int();
    auto loaded = load_tokenizer(model, hints);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    tokenizer_ = std::move(loaded).value();
  }

  std::string folder_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(GoldenTokenizerTest, GivesTheReferencesIds) {
  const std::vector<Json> requests = read_jsonl(folder_ + "/tokenize.jsonl");
  const std::vector<Json> expected = read_jsonl(folder_ + "/tokenize_expected.jsonl");
  ASSERT_EQ(requests.size(), expected.size());
  ASSERT_FALSE(requests.empty());
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::string& text = requests[i].find("text")->as_string();
    const std::string source = text_of(requests[i], "source_lang");
    const std::string target = text_of(requests[i], "target_lang");
    const EncodeOptions options{
        .add_special_tokens = flag(requests[i], "add_special_tokens"),
        .side = text_of(requests[i], "side") == "decoder" ? TokenizerSide::kDecoder : TokenizerSide::kEncoder,
        .source_lang = source,
        .target_lang = target};
    const auto ids = tokenizer_->encode(text, options);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, ids_of(*expected[i].find("token_ids"))) << requests[i].dump();
    const Json* tokens = expected[i].find("tokens");
    for (size_t t = 0; tokens != nullptr && t < ids->size(); ++t) {
      EXPECT_EQ(tokenizer_->side_token_to_string((*ids)[t], options.side), tokens->as_array()[t].as_string())
          << requests[i].dump();
    }
  }
}

TEST_P(GoldenTokenizerTest, GivesTheReferencesTexts) {
  const std::vector<Json> requests = read_jsonl(folder_ + "/detokenize.jsonl");
  const std::vector<Json> expected = read_jsonl(folder_ + "/detokenize_expected.jsonl");
  ASSERT_EQ(requests.size(), expected.size());
  ASSERT_FALSE(requests.empty());
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::vector<int32_t> ids = ids_of(*requests[i].find("token_ids"));
    const bool skip = flag(requests[i], "skip_special_tokens");
    const std::string& text = expected[i].find("text")->as_string();
    EXPECT_EQ(tokenizer_->decode(ids, skip), text) << requests[i].dump();
    IncrementalDetokenizer incremental(*tokenizer_, {}, skip);
    for (const int32_t id : ids) incremental.append(id);
    incremental.finish();
    EXPECT_EQ(incremental.text(), text) << requests[i].dump();
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, GoldenTokenizerTest,
                         ::testing::Values("text/bart", "text/bart-bare-bf16", "text/bart-cnn",
                                           "text/bart-scaled-sharded", "text/bart-tied-fp16", "text/blenderbot",
                                           "text/blenderbot-small", "text/byt5", "text/m2m-100", "text/marian",
                                           "text/mbart", "text/mbart-50", "text/mt5", "text/nllb", "text/pegasus",
                                           "text/plbart", "text/t5", "text/t5-flan", "text/t5-long-fp16", "text/umt5",
                                           "tokenizers/added-token-flags", "tokenizers/blenderbot-small",
                                           "tokenizers/byt5", "tokenizers/byte-level-bpe",
                                           "tokenizers/byte-level-bpe-prefix-space", "tokenizers/m2m-100",
                                           "tokenizers/marian", "tokenizers/mbart", "tokenizers/mbart-50",
                                           "tokenizers/sentencepiece-bpe-nllb", "tokenizers/unigram-byte-fallback",
                                           "tokenizers/unigram-byte-fallback-json", "tokenizers/unigram-nmt-nfkc",
                                           "tokenizers/whisper-tiny"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace transept
