// How a SentencePiece model cuts a normalised text into pieces. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/piece_trie.h"
#include "text/sentencepiece_pieces.h"
#include "text/text_range.h"

namespace transept {

class SentencePieceCutter {
 public:
  struct Cut {
    TextRange range;
    int32_t id;  // the unknown piece's for a character that is in no piece
  };

  virtual ~SentencePieceCutter() = default;

  // Appends cuts that cover the text, in order; each unknown character has one of its own. REQUIRES: valid UTF-8.
  virtual Status cut(std::string_view text, std::vector<Cut>& cuts) const = 0;
};

// The most likely cut. Scores are added in single precision, as the reference does. Borrows `pieces`.
std::unique_ptr<SentencePieceCutter> make_unigram_cutter(const SentencePiecePieces& pieces);

// Joins neighbours to the piece of the best score until none are left; pieces of type unused are then taken apart
// again. O(n log n). Borrows `pieces`. Source: Model::SampleEncode in bpe_model.cc of google/sentencepiece.
std::unique_ptr<SentencePieceCutter> make_bpe_cutter(const SentencePiecePieces& pieces);

// The user-defined pieces, which are found in a text before anything else is.
PieceTrie user_defined_pieces(const SentencePiecePieces& pieces);

}  // namespace transept
