// The languages of a multilingual tokenizer: a code for each, the token that stands for it, and where in a text's frame
// that token stands. A value; immutable after loading, so thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_kind.h"

namespace transept {

class Languages final {
 public:
  enum class Place : uint8_t {
    kBeforeText,       // fr_XX X </s>
    kAfterEnd,         // X </s> fr_XX
    kTargetBeforeText  // the target's, before the source's text: >>fra<< X </s>
  };

  // A tokenizer without languages.
  Languages() = default;
  explicit Languages(Place place) : place_(place) {}

  // The languages of a class of tokenizers that are among its tokens, whose ids `find_token` gives. Of a kind without
  // languages none. Errors: tokenizer_config.json's src_lang or tgt_lang is none of them.
  using FindToken = std::function<std::optional<int32_t>(std::string_view token)>;
  static StatusOr<Languages> of_kind(TokenizerKind kind, const TokenizerConfig& config, const FindToken& find_token);

  // How the tokens of a kind's languages are written, in the order of their ids. Errors: tokenizer_config.json names
  // a list of languages that is not known.
  static StatusOr<std::vector<std::string>> tokens_of_kind(TokenizerKind kind, const TokenizerConfig& config);

  // `token`, as the vocabulary spells it, is understood too.
  void add(std::string_view code, std::string_view token, int32_t id);

  bool empty() const { return codes_.empty(); }
  Place place() const { return place_; }
  // The largest id of a language; -1 without languages.
  int32_t max_id() const { return max_id_; }

  // kTargetBeforeText: the text begins with a language's token of its own.
  bool text_chooses(std::string_view text) const {
    return place_ == Place::kTargetBeforeText && text.starts_with(">>");
  }

  // Errors, under `field`'s name: as Tokenizer::language_token.
  StatusOr<int32_t> find(std::string_view language, std::string_view field) const;

  // The token that the options' language puts beside a text: the source's at the encoder's side, the target's at the
  // decoder's (kTargetBeforeText: the target's at the encoder's side, none at the decoder's). Errors: one of the two
  // languages is unknown.
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
