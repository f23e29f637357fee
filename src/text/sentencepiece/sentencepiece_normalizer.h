// SentencePiece's normalisation of a text before the cut: replacements of its charsmap, white space, the space before
// the text. Immutable, so thread-safe. Source: Normalizer::Normalize in normalizer.cc of google/sentencepiece.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "text/subword/piece_trie.h"
#include "text/unicode/precompiled_charsmap.h"

namespace transept {

// U+2581, which stands for a space in pieces.
inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

class SentencePieceNormalizer final {
 public:
  // Takes the settings of `file`; borrows nothing. The charsmap leaves the texts of `kept` alone (user-defined pieces).
  // Errors: those of PrecompiledCharsmap::parse.
  static StatusOr<SentencePieceNormalizer> create(const SentencePieceFile& file, PieceTrie kept);

  // Normalises any bytes. A byte that belongs to no character is read as U+FFFD, so the result is valid UTF-8 if the
  // `kept` texts are. Errors: kResourceExhausted if the text grows too much (text_growth.h).
  StatusOr<std::string> apply(std::string_view text) const;

 private:
  // A replacement for the front of a text, and how many bytes of the text it replaces.
  struct Step {
    size_t length;
    std::string_view replacement;
  };
  Step next(std::string_view text) const;
  void append_space(std::string& out) const { out += escape_ ? kSpaceSymbol : std::string_view(" "); }
  // Appends a step's replacement, without spaces that follow a space.
  void append(std::string_view replacement, bool& behind_space, std::string& out) const;

  PrecompiledCharsmap charsmap_;
  PieceTrie kept_;
  bool space_before_ = true;  // put one before the text
  bool space_behind_ = false;
  bool remove_extra_ = true;  // remove spaces at both ends, and after other spaces
  bool escape_ = true;
};

}  // namespace transept
