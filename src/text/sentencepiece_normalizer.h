// What SentencePiece does to a text before it cuts it: replacements of its charsmap, white space, the space put before
// it. Immutable, so thread-safe. Source: Normalizer::Normalize in normalizer.cc of google/sentencepiece.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/piece_trie.h"
#include "text/precompiled_charsmap.h"
#include "text/sentencepiece_file.h"

namespace transept {

// U+2581, which stands for a space inside of pieces.
inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

class SentencePieceNormalizer final {
 public:
  // Takes the settings of `file`; borrows nothing. `kept` are texts that the charsmap leaves alone (user-defined
  // pieces). Errors: those of PrecompiledCharsmap::parse.
  static StatusOr<SentencePieceNormalizer> create(const SentencePieceFile& file, PieceTrie kept);

  // Any bytes: each that belongs to no character is read as U+FFFD, so the result is valid UTF-8 where the `kept` texts
  // are. Errors: kResourceExhausted where the text grows out of all proportion.
  StatusOr<std::string> apply(std::string_view text) const;

 private:
  // What the front of a text becomes, and how many of its bytes that takes.
  struct Step {
    size_t length;
    std::string_view replacement;
  };
  Step next(std::string_view text) const;
  void append_space(std::string& out) const { out += escape_ ? kSpaceSymbol : std::string_view(" "); }
  // Of a step's replacement what is left; spaces behind a space go.
  void append(std::string_view replacement, bool& behind_space, std::string& out) const;

  PrecompiledCharsmap charsmap_;
  PieceTrie kept_;
  bool space_before_ = true;  // put one before the text
  bool space_behind_ = false;
  bool remove_extra_ = true;  // spaces at the ends, and behind other spaces
  bool escape_ = true;
};

}  // namespace transept
