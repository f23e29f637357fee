// The settings of tokenizer_config.json, special_tokens_map.json and added_tokens.json. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/pipeline/added_tokens.h"
#include "text/subword/vocabulary.h"

namespace transept {

// The texts of a model folder's tokenizer files; unset: no such file.
struct TokenizerFiles {
  std::optional<std::string> tokenizer_json, vocab_json, merges_txt;
  std::optional<std::string> spiece_model, sentencepiece_bpe_model, tokenizer_model;  // of these the first counts
  std::optional<std::string> source_spm, target_spm, target_vocab_json;
  std::optional<std::string> added_tokens_json, special_tokens_map_json, tokenizer_config_json;
};

struct TokenizerConfig {
  static constexpr std::string_view kFile = "tokenizer_config.json";

  Json raw;                     // the whole tokenizer_config.json, for fields of single classes
  std::string tokenizer_class;  // without "Fast" at its end; "": none
  std::optional<bool> add_prefix_space, add_bos_token, add_eos_token;
  // "bos_token", "eos_token", ...: those of tokenizer_config.json, then those that only special_tokens_map.json names;
  // of each file in transformers' order.
  std::vector<std::pair<std::string, AddedToken>> named_tokens;
  std::vector<std::string> plain_names;  // of those, the ones written as a string, without rules
  std::vector<AddedToken> additional_special_tokens;
  struct ListedToken {
    int32_t id;
    AddedToken token;
    bool has_rules;  // else a special token of the same content gives the rules, if there is one
  };
  // added_tokens_decoder of tokenizer_config.json, then added_tokens.json; each in the order of ids.
  std::vector<ListedToken> added_tokens;

  // Errors name file and field. Missing files are no error.
  static StatusOr<TokenizerConfig> parse(const TokenizerFiles& files);

  // A member of tokenizer_config.json.
  JsonField field(std::string_view name) const { return JsonField(kFile, raw).member(name); }

  // The content of a named token; "" if there is none.
  std::string_view named(std::string_view name) const;
  // Adds a named token that no file names. A token that a file names without rules keeps its content and gets these
  // rules.
  void set_default(std::string_view name, AddedToken rules);
};

// Adds the tokens of the configuration to `out`, those of `added_tokens` first. A token that is there already keeps its
// rules, but becomes special if it is one of named_tokens or additional_special_tokens. With `keep_ids`, `added_tokens`
// get their listed ids, as in transformers' tokenizers in Python; else the next free ones, as in the tokenizers
// library. Errors: those of AddedTokens::add, with the token.
Status add_config_tokens(const TokenizerConfig& config, const Vocabulary& vocabulary, bool keep_ids, AddedTokens& out);

}  // namespace transept
