// The languages of a multilingual tokenizer: the code and the token of each, and the place of that token around a text.
// A value; immutable after loading, so thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/pipeline/tokenizer_config.h"
#include "text/pipeline/tokenizer_kind.h"
#include "text/subword/language_codes.h"
#include "text/tokenizer.h"

namespace transept {

class Languages final {
 public:
  enum class Place : uint8_t {
    kBeforeText,       // fr_XX X </s>
    kAfterEnd,         // X </s> fr_XX
    kTargetBeforeText  // the target's token, before the source's text: >>fra<< X </s>
  };

  // No languages.
  Languages() = default;
  explicit Languages(Place place) : place_(place) {}

  // Finds the languages of a class that are among the tokenizer's tokens, whose ids `find_token` gives. mBART, mBART-50
  // and NLLB also take the additional special tokens as languages. Kinds without languages have none. Errors: src_lang
  // or tgt_lang of tokenizer_config.json is not one of them; its language_codes or legacy_behaviour is not valid.
  using FindToken = std::function<std::optional<int32_t>(std::string_view token)>;
  static StatusOr<Languages> of_kind(TokenizerKind kind, const TokenizerConfig& config, const FindToken& find_token);

  // Returns the spellings of a kind's language tokens, in the order of their ids. Errors: language_codes of
  // tokenizer_config.json names no known list.
  static StatusOr<std::vector<std::string>> tokens_of_kind(TokenizerKind kind, const TokenizerConfig& config);

  // Adds a language, to be found by `code` and by `token`, its spelling in the vocabulary. Ignores a known code.
  void add(std::string_view code, std::string_view token, int32_t id);

  bool empty() const { return codes_.empty(); }
  Place place() const { return place_; }
  // The largest id of a language; -1 without languages.
  int32_t max_id() const { return max_id_; }

  // kTargetBeforeText: whether the text begins with a language's token of its own, as in ">>fra<< The text".
  bool text_chooses(std::string_view text) const {
    return place_ == Place::kTargetBeforeText && language_code_end(text) > 0;
  }

  // Returns the id of a language's token. Errors (kInvalidArgument, under `field`'s name): as
  // Tokenizer::language_token.
  StatusOr<int32_t> find(std::string_view language, std::string_view field) const;

  // Returns the token to put around a text: the source language's on the encoder's side, the target's on the decoder's
  // (kTargetBeforeText: the target's on the encoder's side, none on the decoder's). Languages that the options leave
  // out are tokenizer_config.json's, else the class's, else none. Errors: a language of the options is unknown, also if
  // this side does not use it.
  StatusOr<std::optional<int32_t>> token_for(const EncodeOptions& options) const;

 private:
  std::string known(std::string_view language) const;

  Place place_ = Place::kBeforeText;
  std::vector<std::string> codes_;
  absl::flat_hash_map<std::string, int32_t> id_of_;
  std::optional<int32_t> default_source_, default_target_;
  int32_t max_id_ = -1;
};

}  // namespace transept
