// A SentencePiece model file (.model, .spm): pieces with scores, the normalisation of texts, and the cut of a text into
// pieces (unigram or byte-pair encoding). The meaning of ids in a checkpoint (offsets, language codes, a vocab.json)
// belongs to the tokenizers above. Immutable after parsing, so thread-safe.
// Source: sentencepiece_model.proto, normalizer.cc, unigram_model.cc, bpe_model.cc of google/sentencepiece.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/sentencepiece/sentencepiece_file.h"

namespace transept {

class SentencePieceModel {
 public:
  using PieceType = SentencePieceType;

  // One piece of a cut text. `text` is the normalised text that it covers ("▁the"): a run of unknown characters is one
  // piece. With byte fallback it is the spelling of one byte.
  struct Piece {
    std::string text;
    int32_t id;  // unk_id() if the file has no such piece
  };

  virtual ~SentencePieceModel() = default;

  // Parses a file of at most 64 MiB. Errors name `file`. kInvalidArgument: a malformed message; no unknown piece, or
  // two; a piece that is empty, repeated, not valid UTF-8 or over 1024 bytes; a score that is not finite; byte fallback
  // without its 256 pieces; a malformed charsmap. kUnimplemented: a model type other than unigram and BPE, by name.
  static StatusOr<std::unique_ptr<SentencePieceModel>> parse(std::string_view file, std::string_view bytes);

  virtual int32_t num_pieces() const = 0;
  virtual std::string_view piece(int32_t id) const = 0;  // "" out of range
  virtual PieceType type(int32_t id) const = 0;          // REQUIRES: in range
  virtual float score(int32_t id) const = 0;             // REQUIRES: in range
  virtual std::optional<int32_t> find(std::string_view piece) const = 0;
  virtual int32_t unk_id() const = 0;

  // As SentencePieceProcessor::Encode: normalises (charsmap, white space, the space before a text), then cuts. Takes
  // any bytes: invalid UTF-8 is read as U+FFFD. Time for n bytes: O(n) with unigram, O(n log n) with BPE. Errors:
  // kResourceExhausted if the text grows too much (text_growth.h).
  virtual Status append_pieces(std::string_view text, std::vector<Piece>& pieces) const = 0;
  virtual Status append_ids(std::string_view text, std::vector<int32_t>& ids) const = 0;
};

}  // namespace transept
