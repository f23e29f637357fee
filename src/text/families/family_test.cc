// The tokenizers of the translation and T5 families against transformers' own in Python, with nothing but this
// repository: testdata/families was made by tools/make_family_fixtures.py. Then what the reference has no word for:
// languages that do not exist, files that do not belong together.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/source_dir_testing.h"
#include "text/detokenizer.h"
#include "text/families/load_tokenizer.h"
#include "text/text_testing.h"

namespace transept {
namespace {

using Ids = std::vector<int32_t>;

std::string families_dir() { return str_cat(source_dir(), "/src/text/testdata/families/"); }

const std::vector<Json>& families() {
  static const std::vector<Json> all = read_fixtures("families/families.jsonl");
  return all;
}

std::string read_model(std::string_view name) {
  StatusOr<std::string> bytes = read_file(str_cat(families_dir(), name));
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? std::move(bytes).value() : std::string();
}

struct Folder {
  TokenizerFiles files;
  TokenizerHints hints;

  StatusOr<std::unique_ptr<Tokenizer>> load() const { return make_tokenizer(files, hints); }
};

std::optional<std::string>& file_of(TokenizerFiles& files, std::string_view name) {
  const std::pair<std::string_view, std::optional<std::string>*> places[] = {
      {"spiece.model", &files.spiece_model},
      {"sentencepiece.bpe.model", &files.sentencepiece_bpe_model},
      {"source.spm", &files.source_spm},
      {"target.spm", &files.target_spm},
      {"target_vocab.json", &files.target_vocab_json},
      {"vocab.json", &files.vocab_json},
      {"merges.txt", &files.merges_txt},
      {"tokenizer_config.json", &files.tokenizer_config_json}};
  for (const auto& [known, file] : places) {
    if (known == name) return *file;
  }
  ADD_FAILURE() << name;
  return files.tokenizer_json;
}

Folder folder_of(const Json& fixture) {
  Folder folder;
  folder.hints.model_type = member(fixture, "model_type").as_string();
  for (const auto& [name, text] : member(fixture, "files").as_object()) {
    const std::string& content = text.as_string();
    file_of(folder.files, name) = content.ends_with(".model") ? read_model(content) : content;
  }
  return folder;
}

Folder named_folder(std::string_view name) {
  for (const Json& fixture : families()) {
    if (member(fixture, "name").as_string() == name) return folder_of(fixture);
  }
  ADD_FAILURE() << "no fixture " << name;
  return {};
}

std::unique_ptr<Tokenizer> load(const Folder& folder) {
  auto tokenizer = folder.load();
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

std::unique_ptr<Tokenizer> load(std::string_view name) { return load(named_folder(name)); }

std::string load_error(const Folder& folder) { return error_message(folder.load().status()); }

std::string text_of(const Json& options, std::string_view key) {
  const Json* value = options.find(key);
  return value == nullptr ? "" : value->as_string();
}

TEST(FamilyTest, EncodesAsTransformersDoes) {
  ASSERT_GT(families().size(), 20u);
  for (const Json& fixture : families()) {
    const std::string& name = member(fixture, "name").as_string();
    const std::unique_ptr<Tokenizer> tokenizer = load(folder_of(fixture));
    ASSERT_NE(tokenizer, nullptr) << name;
    for (const Json& row : member(fixture, "encode").as_array()) {
      const std::string& text = row.as_array()[0].as_string();
      const Json& given = row.as_array()[1];
      const std::string source = text_of(given, "source_lang");
      const std::string target = text_of(given, "target_lang");
      EncodeOptions options{.source_lang = source, .target_lang = target};
      options.add_special_tokens = given.find("add_special_tokens") == nullptr;
      if (given.find("side") != nullptr) options.side = TokenizerSide::kDecoder;
      const auto ids = tokenizer->encode(text, options);
      ASSERT_TRUE(ids.ok()) << ids.status();
      EXPECT_EQ(*ids, ids_of(row.as_array()[2])) << name << " " << row.dump();
    }
  }
}

TEST(FamilyTest, DecodesAsTransformersDoes) {
  for (const Json& fixture : families()) {
    const std::string& name = member(fixture, "name").as_string();
    const std::unique_ptr<Tokenizer> tokenizer = load(folder_of(fixture));
    ASSERT_NE(tokenizer, nullptr) << name;
    for (const Json& row : member(fixture, "decode").as_array()) {
      EXPECT_EQ(tokenizer->decode(ids_of(row.as_array()[0]), true), row.as_array()[1].as_string())
          << name << row.dump();
    }
    EXPECT_EQ(tokenizer->vocab_size(), member(fixture, "size").as_int()) << name;
    // With two vocabularies transformers takes the encoder's special ids for the decoder's too.
    if (name == "marian_separate") continue;
    const Ids special = ids_of(member(fixture, "special"));
    for (int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
      EXPECT_EQ(tokenizer->is_special(id), std::find(special.begin(), special.end(), id) != special.end())
          << name << " " << id << " " << tokenizer->token_to_string(id);
    }
  }
}

TEST(FamilyTest, IncrementalTextsAreTheWholesAtEveryLength) {
  std::mt19937 random(7);
  for (const Json& fixture : families()) {
    const std::unique_ptr<Tokenizer> tokenizer = load(folder_of(fixture));
    ASSERT_NE(tokenizer, nullptr);
    for (int round = 0; round < 60; ++round) {
      const Ids ids = random_ids(random, *tokenizer, 20);
      const size_t num_prompt = random() % (ids.size() + 1);
      const bool skip = round % 2 == 0;
      const std::span<const int32_t> all(ids);
      const std::string prompt = tokenizer->decode(all.first(num_prompt), skip);
      for (size_t end = num_prompt; end <= ids.size(); ++end) {
        IncrementalDetokenizer incremental(*tokenizer, all.first(num_prompt), skip);
        for (size_t i = num_prompt; i < end; ++i) incremental.append(ids[i]);
        incremental.finish();
        incremental.finish();  // changes nothing
        const std::string whole = tokenizer->decode(all.first(end), skip);
        // As many characters as the prompt's text has.
        size_t at = 0;
        for (size_t seen = 0; seen < prompt.size() && at < whole.size();) {
          seen += static_cast<size_t>(read_utf8(std::string_view(prompt).substr(seen)).num_bytes);
          at += static_cast<size_t>(read_utf8(std::string_view(whole).substr(at)).num_bytes);
        }
        EXPECT_EQ(incremental.text(), whole.substr(at)) << member(fixture, "name").as_string();
      }
    }
  }
}

TEST(FamilyTest, ASpaceIsKeptAfterAPromptAndLostAtTheBeginning) {
  const std::unique_ptr<Tokenizer> tokenizer = load("t5");
  ASSERT_NE(tokenizer, nullptr);
  const Ids words = *tokenizer->encode("the the", {.add_special_tokens = false});
  EXPECT_EQ(tokenizer->decode(words, true), "the the");
  IncrementalDetokenizer behind_a_word(*tokenizer, words, true);
  for (const int32_t id : words) behind_a_word.append(id);
  EXPECT_EQ(behind_a_word.text(), " the the");
  IncrementalDetokenizer behind_pad(*tokenizer, Ids{0}, true);
  for (const int32_t id : words) behind_pad.append(id);
  EXPECT_EQ(behind_pad.text(), "the the");
}

TEST(FamilyTest, BlenderbotSmallHoldsItsMarkBackUntilTheEnd) {
  Folder folder;
  folder.files.vocab_json = R"({"__null__": 0, "__start__": 1, "__end__": 2, "__unk__": 3, "a@@": 4, "b": 5, "c": 6})";
  folder.files.merges_txt = "#version: 0.2\n";
  folder.hints.model_type = "blenderbot-small";
  const std::unique_ptr<Tokenizer> tokenizer = load(folder);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->decode(Ids{4, 5, 6, 4}, true), "ab c a@@");
  IncrementalDetokenizer text(*tokenizer, {}, true);
  text.append(5);
  text.append(4);
  EXPECT_EQ(text.text(), "b a");
  text.finish();
  EXPECT_EQ(text.text(), "b a@@");
  // The prompt's text was "a@@", of which "a" and two characters more are not the answer's.
  IncrementalDetokenizer behind_mark(*tokenizer, Ids{4}, true);
  for (const int32_t id : {5, 6}) behind_mark.append(id);
  EXPECT_EQ(behind_mark.text(), "c");
}

TEST(FamilyTest, Utf8OfByteModelsIsPutTogether) {
  const std::unique_ptr<Tokenizer> tokenizer = load("byt5");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->decode(Ids{0xC3 + 3, 0xA9 + 3, 1, 'x' + 3, 0xE2 + 3}, true), "éx\uFFFD");
  EXPECT_EQ(tokenizer->decode(Ids{259, 'x' + 3}, false), "<extra_id_0>x");
  EXPECT_EQ(tokenizer->string_to_token("é"), 0xE9 + 3);
  EXPECT_EQ(tokenizer->token_to_string(0xE9 + 3), "é");
}

TEST(FamilyTest, LanguagesHaveTokens) {
  const std::unique_ptr<Tokenizer> m2m100 = load("m2m100");
  ASSERT_NE(m2m100, nullptr);
  EXPECT_EQ(*m2m100->language_token("fr", "target_lang"), *m2m100->string_to_token("__fr__"));
  EXPECT_EQ(*m2m100->language_token("__fr__", "target_lang"), *m2m100->string_to_token("__fr__"));
  const std::unique_ptr<Tokenizer> marian = load("marian");
  ASSERT_NE(marian, nullptr);
  const int32_t french = *marian->string_to_token(">>fra<<");
  EXPECT_EQ(*marian->language_token("fra", "target_lang"), french);
  EXPECT_EQ(error_param(marian->language_token("fra", "source_lang").status()), "source_lang");
  // The target's token stands before the source's text, unless the text has one.
  const Ids plain = *marian->encode("the fox", {});
  Ids with_code = {french};
  with_code.insert(with_code.end(), plain.begin(), plain.end());
  EXPECT_EQ(*marian->encode("the fox", {.target_lang = "fra"}), with_code);
  EXPECT_EQ(*marian->encode(">>fra<< the fox", {.target_lang = "deu"}), with_code);
  // A quotation is no language.
  for (const char* quoted : {">> the fox", ">>", ">>fra", "<<fra>>"}) {
    Ids expected = *marian->encode(quoted, {});
    expected.insert(expected.begin(), french);
    EXPECT_EQ(*marian->encode(quoted, {.target_lang = "fra"}), expected) << quoted;
  }
  EXPECT_EQ(*marian->encode("the fox", {.side = TokenizerSide::kDecoder, .target_lang = "fra"}),
            *marian->encode("the fox", {.side = TokenizerSide::kDecoder}));
}

TEST(FamilyTest, AnUnknownLanguageIsAnErrorThatListsThem) {
  const std::unique_ptr<Tokenizer> mbart = load("mbart");
  ASSERT_NE(mbart, nullptr);
  const Status source = mbart->encode("x", {.source_lang = "fr"}).status();
  EXPECT_EQ(error_param(source), "source_lang");
  EXPECT_EQ(error_message(source),
            "the language \"fr\" is not one of this model's: ar_AR, cs_CZ, de_DE, en_XX, es_XX, et_EE, fi_FI, fr_XX, "
            "gu_IN, hi_IN, it_IT, ja_XX, kk_KZ, ko_KR, lt_LT, lv_LV, my_MM, ne_NP, nl_XX, ro_RO, ru_RU, si_LK, tr_TR, "
            "vi_VN, zh_CN");
  EXPECT_EQ(error_param(mbart->encode("x", {.target_lang = "xx"}).status()), "target_lang");
  EXPECT_EQ(error_param(mbart->language_token("xx", "target_lang").status()), "target_lang");
  const std::unique_ptr<Tokenizer> nllb = load("nllb");
  ASSERT_NE(nllb, nullptr);
  const std::string message = error_message(nllb->encode("x", {.target_lang = "zho"}).status());
  EXPECT_TRUE(message.starts_with("the language \"zho\" is not one of this model's: zho_Hans, zho_Hant, ace_Arab, "));
  EXPECT_TRUE(message.ends_with(" and 142 more")) << message;
  const std::unique_ptr<Tokenizer> t5 = load("t5");
  ASSERT_NE(t5, nullptr);
  EXPECT_EQ(error_message(t5->language_token("de", "target_lang").status()),
            "this model has no languages to choose from");
}

// A tokenizer.json says which tokens there are, the class which of them are languages and where they stand.
TEST(FamilyTest, TokenizerJsonHasTheLanguagesOfItsClass) {
  Json json = tokenizer_json(read_fixtures("tokenizers.jsonl"), "gpt2");
  Json added = Json::array();
  int32_t id = 350;
  for (const std::string_view token : {"</s>", "eng_Latn", "fra_Latn", "new_Latn"}) {
    Json entry = Json::object();
    entry.set("id", token == "</s>" ? 2 : id++);
    entry.set("content", std::string(token));
    entry.set("special", true);
    entry.set("normalized", false);
    added.push_back(std::move(entry));
  }
  json.set("added_tokens", std::move(added));
  const auto make = [&](std::string_view config, std::string model_type) {
    TokenizerFiles files;
    files.tokenizer_json = json.dump();
    files.tokenizer_config_json = config;
    return make_tokenizer(files, {.model_type = std::move(model_type)});
  };
  const auto nllb =
      make(R"({"tokenizer_class": "NllbTokenizerFast", "additional_special_tokens": ["new_Latn"]})", "m2m_100");
  ASSERT_TRUE(nllb.ok()) << nllb.status();
  const int32_t x = *(*nllb)->string_to_token("x");
  const int32_t english = *(*nllb)->string_to_token("eng_Latn");
  EXPECT_EQ(*(*nllb)->encode("x", {}), (Ids{english, x, 2}));
  EXPECT_EQ(*(*nllb)->encode("x", {.source_lang = "fra_Latn"}), (Ids{english + 1, x, 2}));
  EXPECT_EQ(*(*nllb)->encode("x", {.side = TokenizerSide::kDecoder, .target_lang = "new_Latn"}),
            (Ids{english + 2, x, 2}));
  EXPECT_EQ(*(*nllb)->encode("x", {.side = TokenizerSide::kDecoder}), (Ids{x, 2}));
  const auto legacy = make(R"({"tokenizer_class": "NllbTokenizer", "legacy_behaviour": true})", "m2m_100");
  ASSERT_TRUE(legacy.ok()) << legacy.status();
  EXPECT_EQ(*(*legacy)->encode("x", {}), (Ids{x, 2, english}));
  const auto other = make("{}", "bart");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(error_message((*other)->encode("x", {.source_lang = "eng_Latn"}).status()),
            "this model has no languages to choose from");
}

// As transformers 5, which gives these ids whatever the field says; 4 left out the space (3) behind the sentinel (329).
TEST(FamilyTest, T5sLegacyFieldChangesNothing) {
  for (const char* config : {R"({})", R"({"legacy": null})", R"({"legacy": true})", R"({"legacy": false})"}) {
    Folder folder = named_folder("t5");
    folder.files.tokenizer_config_json = config;
    const auto tokenizer = folder.load();
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ(*(*tokenizer)->encode("the <extra_id_0> fox", {}), (Ids{6, 329, 3, 110, 11, 111, 1})) << config;
  }
  Folder folder = named_folder("t5");
  folder.files.tokenizer_config_json = R"({"legacy": "no"})";
  EXPECT_EQ(load_error(folder), "tokenizer_config.json: legacy: expected a boolean, found a string");
}

// Python's versions of 4.34 and later put <mask> before the languages, version 5 has none without a tokenizer.json; the
// published models were trained with this order, which their tokenizer.json has too.
TEST(FamilyTest, NllbsLanguagesStandBeforeItsMask) {
  Folder folder = named_folder("nllb");
  folder.files.tokenizer_config_json = R"({"tokenizer_class": "NllbTokenizer"})";
  const auto tokenizer = folder.load();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->string_to_token("ace_Arab") + 202, *(*tokenizer)->string_to_token("<mask>"));
}

TEST(FamilyErrorTest, FilesThatAreMissingOrDamagedAreNamed) {
  Folder marian = named_folder("marian");
  marian.files.target_spm.reset();
  EXPECT_EQ(load_error(marian),
            "target.spm: is missing (Marian's tokenizer has source.spm, target.spm and vocab.json)");
  marian = named_folder("marian_separate");
  marian.files.target_vocab_json.reset();
  EXPECT_EQ(load_error(marian),
            "target_vocab.json: is missing (Marian's tokenizer has source.spm, target.spm and "
            "vocab.json, and target_vocab.json where separate_vocabs is true)");
  marian = named_folder("marian");
  marian.files.source_spm = "no message";
  EXPECT_TRUE(load_error(marian).starts_with("source.spm: ")) << load_error(marian);
  Folder m2m100 = named_folder("m2m100");
  m2m100.files.vocab_json.reset();
  EXPECT_EQ(load_error(m2m100),
            "vocab.json: is missing (M2M100's tokenizer has vocab.json and sentencepiece.bpe.model)");
  Folder t5 = named_folder("t5");
  t5.files.spiece_model->resize(t5.files.spiece_model->size() / 2);
  EXPECT_TRUE(load_error(t5).starts_with("spiece.model: ")) << load_error(t5);
}

TEST(FamilyErrorTest, FilesThatDoNotBelongTogetherAreNamed) {
  Folder folder = named_folder("m2m100");
  folder.files.vocab_json = R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4})";
  EXPECT_EQ(load_error(folder),
            "vocab.json: knows only 1 of the 217 pieces of sentencepiece.bpe.model: the two do not "
            "belong together");
  folder.files.vocab_json = R"({"<s>": 0, "</s>": 2})";
  EXPECT_EQ(load_error(folder), "vocab.json: the unk_token \"<unk>\" is missing");
  folder = named_folder("marian");
  const size_t end_token = folder.files.vocab_json->find("</s>");
  folder.files.vocab_json->replace(end_token, 4, "<end>");
  EXPECT_EQ(load_error(folder), "vocab.json: the eos_token \"</s>\" is missing");
}

TEST(FamilyErrorTest, AVocabularyLargerThanTheEmbeddingIsRefused) {
  Folder folder = named_folder("m2m100");
  const int64_t num_tokens = load(folder)->vocab_size();
  folder.hints.vocab_size = num_tokens;
  EXPECT_TRUE(folder.load().ok());
  folder.hints.vocab_size = num_tokens - 1;
  const Status languages = folder.load().status();
  EXPECT_EQ(error_message(languages), str_cat("vocab.json: the token \"__zu__\" has the id ", num_tokens - 1,
                                              ", more than config.json's vocab_size of ", num_tokens - 1, " allows"));
  EXPECT_EQ(error_param(languages), "vocab_size");
  folder.hints.vocab_size = 100;
  EXPECT_TRUE(load_error(folder).ends_with("has the id 100, more than config.json's vocab_size of 100 allows"));
  // Sentinels that no file asks for may lie behind the embedding: a text that holds one is refused when it comes.
  folder = named_folder("t5");
  folder.hints.vocab_size = 230;
  EXPECT_TRUE(folder.load().ok());
  folder.hints.vocab_size = 229;
  EXPECT_FALSE(folder.load().ok());
}

TEST(FamilyErrorTest, DamagedConfigurationNamesFileFieldAndReason) {
  const auto message = [](std::string_view name, std::string_view config) {
    Folder folder = named_folder(name);
    folder.files.tokenizer_config_json = config;
    return load_error(folder);
  };
  EXPECT_EQ(message("t5", R"({"tokenizer_class": "T5Tokenizer", "extra_ids": -1})"),
            "tokenizer_config.json: extra_ids: token id -1 is not between 0 and 1999999");
  EXPECT_EQ(message("t5", R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 100000})"),
            "tokenizer_config.json: extra_ids: 100000 is more than the 20000 allowed");
  EXPECT_EQ(message("t5", R"({"extra_ids": 3, "additional_special_tokens": ["<extra_id_0>"]})"),
            "tokenizer_config.json: extra_ids: 3, but additional_special_tokens names 1 of them");
  EXPECT_EQ(message("m2m100", R"({"language_codes": "m2m"})"),
            "tokenizer_config.json: language_codes: expected \"m2m100\" or \"wmt21\"");
  EXPECT_EQ(message("plbart", R"({"language_codes": 3})"),
            "tokenizer_config.json: language_codes: expected a string, found a number");
  EXPECT_EQ(message("plbart", R"({"src_lang": "rust"})"),
            "tokenizer_config.json: src_lang: the language \"rust\" is not one of this model's: java, python, en_XX");
  EXPECT_EQ(message("nllb", R"({"tokenizer_class": "NllbTokenizer", "legacy_behaviour": "no"})"),
            "tokenizer_config.json: legacy_behaviour: expected a boolean, found a string");
  EXPECT_EQ(
      message("mbart", R"({"tokenizer_class": "CamembertTokenizer"})"),
      "a tokenizer of sentencepiece.bpe.model is not supported for the tokenizer_class \"CamembertTokenizer\" and "
      "the model type \"mbart\"");
  EXPECT_EQ(message("mbart", R"({"added_tokens_decoder": {"230": {"content": "<x>"}, "231": {"content": "<x>y"}}})"),
            "tokenizer_config.json or added_tokens.json: the added token \"<x>\": token id 230 belongs to a token of "
            "the vocabulary");
}

TEST(FamilyTest, TheClassStandsInConfigJsonToo) {
  Folder folder = named_folder("mbart");
  folder.files.tokenizer_config_json.reset();
  const int32_t mbart = *load(folder)->string_to_token("<mask>");
  folder.hints.tokenizer_class = "MBart50TokenizerFast";
  EXPECT_EQ(*load(folder)->string_to_token("<mask>"), mbart + 27);
  // Without a class the type decides, and vocab.json between the two of m2m_100.
  folder.hints = {.model_type = "m2m_100"};
  EXPECT_TRUE(load(folder)->string_to_token("fra_Latn").has_value());
  folder = named_folder("m2m100");
  folder.files.tokenizer_config_json.reset();
  EXPECT_TRUE(load(folder)->string_to_token("__fr__").has_value());
}

}  // namespace
}  // namespace transept
