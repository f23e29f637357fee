// SentencePiece's compiled table of replacements ("nmt_nfkc" and others): which bytes at the front of a text become
// which text. Two programs read the table in two ways, and both are here. SentencePiece takes the longest rule at every
// place. Hugging Face's tokenizers go by graphemes: the shortest rule at the front of a grapheme replaces all of it,
// but graphemes of six bytes and more go character by character. Immutable after parsing, so thread-safe.
// Source: normalizer.cc of google/sentencepiece, darts-clone's double array; spm_precompiled and
// normalizers/precompiled.rs of Hugging Face.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

class PrecompiledCharsmap final {
 public:
  struct Match {
    size_t length;  // bytes of the text that the rule replaces
    std::string_view replacement;
  };

  // A table without rules.
  PrecompiledCharsmap() = default;

  // Parses, little-endian: the trie's size in bytes, 32 bits; the trie, in units of 32 bits; the replacements, each
  // ended by NUL. Errors (kInvalidArgument): sizes that contradict the length; a trie that points outside of itself or
  // of the replacements, or into a character; replacements that are not valid UTF-8; more than kMaxBytes.
  static StatusOr<PrecompiledCharsmap> parse(std::string_view bytes);
  static constexpr size_t kMaxBytes = size_t{4} << 20;  // published tables have a quarter of a megabyte

  bool empty() const { return units_.empty(); }

  // Return the longest and the shortest rule at the front of `text`, valid as long as the table; nothing if none
  // matches. Rules of more than kMaxRuleBytes never match.
  std::optional<Match> longest(std::string_view text) const;
  std::optional<Match> shortest(std::string_view text) const;
  static constexpr size_t kMaxRuleBytes = 256;  // bounds the time of a search in a trie with a cycle

  // Appends the result of tokenizers' Precompiled for `text`. REQUIRES: valid UTF-8. Errors: kResourceExhausted if the
  // text grows too much (text_growth.h).
  Status append_by_graphemes(std::string_view text, std::string& out) const;

 private:
  Status check() const;
  Match match(size_t length, uint32_t node) const;
  // Calls visit(length, node) for each rule at the front, the shortest first, until it returns false.
  template <typename Visit>
  void for_each_rule(std::string_view text, Visit visit) const;
  void append_grapheme(std::string_view grapheme, std::string& out) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace transept
