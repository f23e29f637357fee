// A SentencePiece model file (.model, .spm): pieces with scores, how texts are normalised, and how they are cut into
// pieces (unigram or byte-pair encoding). What the ids mean to a checkpoint (offsets, language codes, a vocab.json of
// its own) is the business of the tokenizers above it. Immutable after parsing, so thread-safe.
// Source: sentencepiece_model.proto, normalizer.cc, unigram_model.cc, bpe_model.cc of google/sentencepiece.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/sentencepiece_file.h"

namespace transept {

class SentencePieceModel {
 public:
  using PieceType = SentencePieceType;

  // A cut of a text. `text` is what stands there after normalisation ("▁the"): for an unknown one the characters
  // themselves, a run of them in one.
  struct Piece {
    std::string text;
    int32_t id;  // unk_id() if it is none of the file's
  };

  virtual ~SentencePieceModel() = default;

  // `file` names the file in errors: bytes that are no such message, lengths that run past its end, no or two unknown
  // pieces, an empty or repeated piece, a score that is no number, byte fallback without its 256 pieces, a charsmap
  // that points outside of itself, a model type other than unigram and BPE (by name).
  static StatusOr<std::unique_ptr<SentencePieceModel>> parse(std::string_view file, std::string_view bytes);

  virtual int32_t num_pieces() const = 0;
  virtual std::string_view piece(int32_t id) const = 0;  // "" out of range
  virtual PieceType type(int32_t id) const = 0;          // REQUIRES: in range
  virtual float score(int32_t id) const = 0;             // REQUIRES: in range
  virtual std::optional<int32_t> find(std::string_view piece) const = 0;
  virtual int32_t unk_id() const = 0;

  // SentencePieceProcessor::Encode: normalises (charsmap, white space, the space put before a text), then cuts. Any
  // bytes: invalid UTF-8 is read as U+FFFD. Time is linear in the text's length. Errors: kResourceExhausted where a
  // text grows out of all proportion.
  virtual Status append_pieces(std::string_view text, std::vector<Piece>& pieces) const = 0;
  virtual Status append_ids(std::string_view text, std::vector<int32_t>& ids) const = 0;
};

}  // namespace transept
