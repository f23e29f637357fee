// Whole tokenizers: what holds for every text, how files are found, and what damaged ones are answered.
#include "text/tokenizer.h"
#include "text/families/load_tokenizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/base64.h"
#include "text/families/tokenizer_testing.h"

namespace transept {
namespace {

TEST(TokenizerTest, ByteLevelGivesEveryTextBack) {
  const std::unique_ptr<Tokenizer> tokenizer = make_json_fixture("gpt2");
  ASSERT_NE(tokenizer, nullptr);
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random_text(random, 30);
    const auto ids = tokenizer->encode(text, {.add_special_tokens = false});
    ASSERT_TRUE(ids.ok());
    ASSERT_EQ(tokenizer->decode(*ids, /*skip_special_tokens=*/false), text);
  }
}

TEST(TokenizerTest, InvalidUtf8IsReadAsReplacements) {
  const std::unique_ptr<Tokenizer> tokenizer = make_json_fixture("gpt2");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(*tokenizer->encode("a\xF0\x9Fz\xFF", {}), *tokenizer->encode("a\uFFFDz\uFFFD", {}));
}

TEST(TokenizerTest, IdsAndSpellings) {
  const std::unique_ptr<Tokenizer> tokenizer = make_json_fixture("added_tokens");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->string_to_token("<s>"), 0);
  EXPECT_EQ(tokenizer->token_to_string(0), "<s>");
  const std::optional<int32_t> mask = tokenizer->string_to_token("<mask>");
  ASSERT_TRUE(mask.has_value());
  EXPECT_EQ(tokenizer->token_to_string(*mask), "<mask>");
  EXPECT_TRUE(tokenizer->is_special(*mask));
  EXPECT_TRUE(tokenizer->is_special(2));
  EXPECT_FALSE(tokenizer->is_special(*tokenizer->string_to_token("[L]")));
  EXPECT_FALSE(tokenizer->is_special(*tokenizer->string_to_token("a")));
  EXPECT_EQ(tokenizer->token_to_string(tokenizer->vocab_size()), "");
  EXPECT_EQ(tokenizer->token_to_string(-1), "");
  EXPECT_NE(tokenizer->token_to_string(tokenizer->vocab_size() - 1), "");
  EXPECT_FALSE(tokenizer->string_to_token("no such token").has_value());
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{-1, 1'000'000, *tokenizer->string_to_token("a")}, false), "a");
}

// As a folder has Vicuna's: tokenizer.model, and the class's name.
TEST(TokenizerTest, LlamasAreThePiecesOfTheirModelBehindABeginning) {
  const std::vector<Json> models = read_fixtures("models.jsonl");
  const auto is_it = [](const Json& model) { return member(model, "name").as_string() == "bpe_bytes"; };
  const auto model = std::ranges::find_if(models, is_it);
  ASSERT_NE(model, models.end());
  TokenizerFiles files;
  files.tokenizer_model = decode_base64(member(*model, "model").as_string()).value();
  TokenizerHints hints;
  hints.model_type = "cogagent";
  EXPECT_TRUE(make_tokenizer(files, hints).ok()) << "by the model's type alone";
  files.tokenizer_config_json = R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})";
  const auto tokenizer = make_tokenizer(files, {});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  int num_texts = 0;
  for (const Json& answer : member(*model, "encode").as_array()) {
    const std::string& text = answer.as_array()[0].as_string();
    if (text.find('<') != std::string::npos) continue;  // special tokens, which are pieces to the library
    std::vector<int32_t> ids;
    for (const Json& id : answer.as_array()[2].as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
    EXPECT_EQ(*(*tokenizer)->encode(text, {.add_special_tokens = false}), ids) << text;
    ids.insert(ids.begin(), *(*tokenizer)->string_to_token("<s>"));
    EXPECT_EQ(*(*tokenizer)->encode(text, {}), ids) << text;
    ++num_texts;
  }
  EXPECT_GT(num_texts, 10);
  files.tokenizer_config_json =
      R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": false, "add_eos_token": true})";
  const std::vector<int32_t> framed = *(*make_tokenizer(files, {}))->encode("a", {});
  EXPECT_EQ(framed.back(), *(*tokenizer)->string_to_token("</s>"));
  EXPECT_NE(framed.front(), *(*tokenizer)->string_to_token("<s>"));
}

TEST(TokenizerTest, LanguagesAreRefusedWhereThereAreNone) {
  const std::unique_ptr<Tokenizer> tokenizer = make_json_fixture("gpt2");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(error_param(tokenizer->encode("a", {.source_lang = "en"}).status()), "source_lang");
  EXPECT_EQ(error_param(tokenizer->encode("a", {.target_lang = "fr"}).status()), "target_lang");
}

TEST(TokenizerTest, AMegabyteInOneWordTakesLessThanTwoSeconds) {
  const std::unique_ptr<Tokenizer> tokenizer = make_json_fixture("gpt2");
  ASSERT_NE(tokenizer, nullptr);
  std::mt19937 random(11);
  std::string text;
  while (text.size() < 1'000'000) text.push_back(static_cast<char>('a' + random() % 26));
  const double start = cpu_seconds();
  const auto ids = tokenizer->encode(text, {});
  EXPECT_LT(cpu_seconds() - start, 2 * kSlowness);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(tokenizer->decode(*ids, false), text);
}

// Special tokens that only the configuration names.
TEST(TokenizerTest, ConfigurationNamesSpecialTokens) {
  TokenizerFiles files;
  files.tokenizer_json = tokenizer_json(read_fixtures("tokenizers.jsonl"), "gpt2").dump();
  files.tokenizer_config_json = R"({"mask_token": {"content": "a", "lstrip": true}, "sep_token": null,
                                    "added_tokens_decoder": {"350": {"content": "[new]", "special": false}},
                                    "additional_special_tokens": ["<extra>"], "add_prefix_space": true})";
  const auto tokenizer = make_tokenizer(files, {});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const int32_t mask = *(*tokenizer)->string_to_token("a");
  const int32_t added = *(*tokenizer)->string_to_token("[new]");
  const int32_t extra = *(*tokenizer)->string_to_token("<extra>");
  EXPECT_TRUE((*tokenizer)->is_special(mask));
  EXPECT_FALSE((*tokenizer)->is_special(added));
  EXPECT_TRUE((*tokenizer)->is_special(extra));
  EXPECT_EQ(extra, added + 1);
  const int32_t x = *(*tokenizer)->string_to_token("x");
  const int32_t space = *(*tokenizer)->string_to_token("Ġ");
  EXPECT_EQ(*(*tokenizer)->encode("x a<extra>[new]", {}), (std::vector<int32_t>{space, x, mask, extra, added}));
}

class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ =
        std::filesystem::temp_directory_path() /
        str_cat("transept_tokenizer_", ::testing::UnitTest::GetInstance()->current_test_info()->name(), "_", getpid());
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  void write(std::string_view name, std::string_view text) { std::ofstream(dir_ / name) << text; }

  std::filesystem::path dir_;
};

TEST_F(FolderTest, TokenizerJsonComesFirst) {
  write("tokenizer.json", tokenizer_json(read_fixtures("tokenizers.jsonl"), "gpt2").dump());
  write("vocab.json", "damaged");
  write("merges.txt", "damaged");
  EXPECT_TRUE(load_tokenizer(dir_.string(), {}).ok());
}

TEST_F(FolderTest, ThenVocabAndMergesThenCharacterTables) {
  write("vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "ab": 6, "<mask>": 7})");
  EXPECT_EQ(load_tokenizer(dir_.string(), {.model_type = "bart"}).status().code(), absl::StatusCode::kNotFound);
  const auto characters = load_tokenizer(dir_.string(), {.grapheme_chars = "____ab", .phoneme_chars = "____xy"});
  ASSERT_TRUE(characters.ok()) << characters.status();
  EXPECT_EQ((*characters)->vocab_size(), 6);
  write("merges.txt", "#version: 0.2\na b\n");
  const auto merges =
      load_tokenizer(dir_.string(), {.model_type = "bart", .grapheme_chars = "____ab", .phoneme_chars = "____xy"});
  ASSERT_TRUE(merges.ok()) << merges.status();
  EXPECT_EQ(*(*merges)->encode("ab", {}), (std::vector<int32_t>{0, 6, 2}));
  EXPECT_TRUE((*merges)->is_special(7));
}

TEST_F(FolderTest, OtherKindsAreRefusedByName) {
  const Status nothing = load_tokenizer(dir_.string(), {}).status();
  EXPECT_EQ(nothing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(error_message(nothing),
            "no tokenizer: neither tokenizer.json, nor vocab.json with merges.txt, nor a SentencePiece model "
            "(spiece.model, sentencepiece.bpe.model, tokenizer.model, or source.spm, target.spm and vocab.json)");
  write("tokenizer_config.json", R"({"tokenizer_class": "CpmTokenizer"})");
  EXPECT_EQ(error_message(load_tokenizer(dir_.string(), {}).status()),
            "tokenizer_config.json: tokenizer_class: CpmTokenizer is not supported yet");
  write("tokenizer_config.json", "{}");
  write("vocab.txt", "");
  EXPECT_EQ(error_message(load_tokenizer(dir_.string(), {}).status()), "a tokenizer of vocab.txt is not supported yet");
  write("vocab.json", "{}");
  write("merges.txt", "");
  EXPECT_EQ(error_message(load_tokenizer(dir_.string(), {.model_type = "xlm"}).status()),
            "vocab.json and merges.txt: a tokenizer for the model type \"xlm\" is not supported yet");
  write("tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})");
  EXPECT_EQ(error_message(load_tokenizer(dir_.string(), {.model_type = "bart"}).status()),
            "tokenizer_config.json: tokenizer_class: CLIPTokenizer is not supported with vocab.json and merges.txt "
            "(supported: BartTokenizer, BlenderbotTokenizer, WhisperTokenizer, GPT2Tokenizer, "
            "BlenderbotSmallTokenizer)");
}

// Each damage is one replacement in a good file.
TEST(TokenizerErrorTest, DamagedTokenizerJsonNamesFileFieldAndReason) {
  const std::string good = tokenizer_json(read_fixtures("tokenizers.jsonl"), "added_tokens").dump();
  const auto message = [&](std::string_view from, std::string_view to) {
    std::string damaged = good;
    const size_t at = damaged.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) damaged.replace(at, from.size(), to);
    TokenizerFiles files;
    files.tokenizer_json = damaged;
    return error_message(make_tokenizer(files, {}).status());
  };
  EXPECT_EQ(message(R"("version": "1.0")", R"("version": "2.0")"),
            "tokenizer.json: version: only version 1.0 is known");
  EXPECT_EQ(message(R"("type": "BPE")", R"("type": "WordLevel")"),
            "tokenizer.json: model.type: WordLevel is not supported yet");
  EXPECT_EQ(message(R"("type": "NFC")", R"("type": "ByteLevel")"),
            "tokenizer.json: normalizer.normalizers[0].type: ByteLevel is not supported yet");
  EXPECT_EQ(message(R"("Regex": "\\s+")", R"("Regex": "(")").substr(0, 83),
            "tokenizer.json: normalizer.normalizers[2].pattern.Regex: not a valid regular expres");
  EXPECT_EQ(message(R"("Regex": "\\s+")", R"("String": "")"),
            "tokenizer.json: normalizer.normalizers[2].pattern.String: an empty pattern is not supported yet");
  EXPECT_EQ(message(R"("pre_tokenizer": {"type": "ByteLevel")", R"("pre_tokenizer": {"type": "UnicodeScripts")"),
            "tokenizer.json: pre_tokenizer.type: UnicodeScripts is not supported yet");
  EXPECT_EQ(message(R"("decoder": {"type": "ByteLevel")", R"("decoder": {"type": "CTC")"),
            "tokenizer.json: decoder.type: CTC is not supported yet");
  EXPECT_EQ(message(R"("sep": ["</s>", 2])", R"("sep": ["</s>", 999])"),
            "tokenizer.json: post_processor: token id 999 is not in the vocabulary");
  EXPECT_EQ(message(R"("sep": ["</s>", 2])", R"("sep": ["</s>", -2])"),
            "tokenizer.json: post_processor.sep[1]: token id -2 is not between 0 and 1999999");
  EXPECT_EQ(message(R"("sep": ["</s>", 2])", R"("sep": 2)"),
            "tokenizer.json: post_processor.sep: expected a list, found a number");
  EXPECT_EQ(message(R"("content": "</s>", )", ""),
            "tokenizer.json: added_tokens[2].content: is missing (expected a string)");
  EXPECT_EQ(message(R"("single_word": false)", R"("single_word": 0)"),
            "tokenizer.json: added_tokens[0].single_word: expected a boolean, found a number");
  EXPECT_EQ(message(R"("merges": [)", R"("merges": [["t", "no"], )"),
            "tokenizer.json: model.merges[0]: \"no\" is not in the vocabulary");
  EXPECT_EQ(message(R"("model": {)", R"("modle": {)"), "tokenizer.json: model: is missing (expected an object)");
  EXPECT_EQ(message("{", "[").substr(0, 31), "tokenizer.json: not valid JSON:");
}

TEST(TokenizerErrorTest, DamagedConfigurationNamesFileFieldAndReason) {
  TokenizerFiles files;
  files.tokenizer_json = tokenizer_json(read_fixtures("tokenizers.jsonl"), "gpt2").dump();
  const auto message = [&](std::optional<std::string> TokenizerFiles::*file, std::string text) {
    TokenizerFiles damaged = files;
    damaged.*file = std::move(text);
    return error_message(make_tokenizer(damaged, {}).status());
  };
  EXPECT_EQ(message(&TokenizerFiles::tokenizer_config_json, R"({"bos_token": 3})"),
            "tokenizer_config.json: bos_token: expected a string, found a number");
  EXPECT_EQ(message(&TokenizerFiles::tokenizer_config_json, R"({"added_tokens_decoder": {"x": {}}})"),
            "tokenizer_config.json: added_tokens_decoder.x: its name is not a token id");
  EXPECT_EQ(message(&TokenizerFiles::tokenizer_config_json, R"({"added_tokens_decoder": {"3": {}}})"),
            "tokenizer_config.json: added_tokens_decoder.3.content: is missing (expected a string)");
  EXPECT_EQ(message(&TokenizerFiles::special_tokens_map_json, "[]"),
            "special_tokens_map.json: expected an object, found a list");
  EXPECT_EQ(message(&TokenizerFiles::added_tokens_json, R"({"a": "b"})"),
            "added_tokens.json: a: expected a token id, found a string");
}

// Files that ask for endless work or memory.
TEST(TokenizerErrorTest, HostileFilesAreBounded) {
  const std::string good = tokenizer_json(read_fixtures("tokenizers.jsonl"), "gpt2").dump();
  const auto with_normalizer = [&](std::string_view normalizer) {
    std::string text = good;
    constexpr std::string_view kNull = R"("normalizer": null)";
    text.replace(text.find(kNull), kNull.size(), str_cat(R"("normalizer": )", normalizer));
    TokenizerFiles files;
    files.tokenizer_json = text;
    return make_tokenizer(files, {});
  };
  std::string doubling;
  for (int i = 0; i < 60; ++i) {
    doubling += str_cat(i == 0 ? "" : ", ", R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})");
  }
  const auto growing = with_normalizer(str_cat(R"({"type": "Sequence", "normalizers": [)", doubling, "]}"));
  ASSERT_TRUE(growing.ok()) << growing.status();
  EXPECT_EQ((*growing)->encode("a", {}).status().code(), absl::StatusCode::kResourceExhausted);
  std::string many = R"({"type": "NFC"})";
  for (int i = 0; i < 100; ++i) many += R"(, {"type": "NFC"})";
  EXPECT_EQ(error_message(with_normalizer(str_cat(R"({"type": "Sequence", "normalizers": [)", many, "]}")).status()),
            "tokenizer.json: normalizer.normalizers[64]: more than 64 steps");
}

// A template writes a special token once and may name it often: what it comes to is bounded, not what is written.
TEST(TokenizerErrorTest, SpecialTokensOfATemplateAreBounded) {
  const auto status_of = [](int num_before, int num_behind, int num_ids) {
    Json tokenizer = tokenizer_json(read_fixtures("tokenizers.jsonl"), "added_tokens_plain");
    std::string single, ids;
    const auto append_specials = [&](int count) {
      for (int i = 0; i < count; ++i) single += R"({"SpecialToken": {"id": "<s>", "type_id": 0}}, )";
    };
    append_specials(num_before);
    single += R"({"Sequence": {"id": "A", "type_id": 0}}, )";
    append_specials(num_behind);
    for (int i = 0; i < num_ids; ++i) ids += "0, ";
    // Each list ends in a comma and a space too many.
    single.resize(single.size() - 2);
    ids.resize(ids.size() - 2);
    const auto processor = Json::parse(str_cat(R"({"type": "TemplateProcessing", "single": [)", single,
                                               R"(], "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [)",
                                               ids, R"(], "tokens": []}}})"));
    EXPECT_TRUE(processor.ok()) << processor.status();
    tokenizer.set("post_processor", *processor);
    TokenizerFiles files;
    files.tokenizer_json = tokenizer.dump();
    return make_tokenizer(files, {}).status();
  };
  constexpr std::string_view kTooMany =
      "tokenizer.json: post_processor.special_tokens.<s>.ids: more than 256 special tokens";
  EXPECT_TRUE(status_of(128, 0, 2).ok());
  EXPECT_TRUE(status_of(100, 28, 2).ok());
  EXPECT_EQ(error_message(status_of(129, 0, 2)), kTooMany);
  EXPECT_EQ(error_message(status_of(100, 29, 2)), kTooMany);
  EXPECT_EQ(error_message(status_of(1, 0, 257)), kTooMany);
  EXPECT_EQ(error_message(status_of(255, 0, 100'000)), kTooMany);
  EXPECT_EQ(error_message(status_of(256, 0, 1)), "tokenizer.json: post_processor.single: more than 256 pieces");
}

}  // namespace
}  // namespace transept
