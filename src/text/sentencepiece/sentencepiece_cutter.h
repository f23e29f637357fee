// Cuts a normalised text into the pieces of a SentencePiece model. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/sentencepiece/sentencepiece_pieces.h"
#include "text/subword/piece_trie.h"
#include "text/unicode/text_range.h"

namespace transept {

class SentencePieceCutter {
 public:
  struct Cut {
    TextRange range;
    int32_t id;  // the unknown piece's for a character without a piece
  };

  virtual ~SentencePieceCutter() = default;

  // Appends cuts that cover the text, in order; each unknown character is a cut of its own. REQUIRES: valid UTF-8.
  // Errors: kInvalidArgument, BPE only: over 1 GiB.
  virtual Status cut(std::string_view text, std::vector<Cut>& cuts) const = 0;
};

// Makes the most likely cut. Adds scores in single precision, as the reference does. Copies what it needs of `pieces`.
std::unique_ptr<SentencePieceCutter> make_unigram_cutter(const SentencePiecePieces& pieces);

// Joins neighbours to the piece of the best score until no two make a piece; then splits pieces of type kUnused again.
// O(n log n). Borrows `pieces`. Source: Model::SampleEncode in bpe_model.cc of google/sentencepiece.
std::unique_ptr<SentencePieceCutter> make_bpe_cutter(const SentencePiecePieces& pieces);

// Returns the user-defined pieces, which match before all others.
PieceTrie user_defined_pieces(const SentencePiecePieces& pieces);

}  // namespace transept
