// Encodes with a SentencePiece model, under the ids that a checkpoint gives to pieces. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "text/sentencepiece/sentencepiece.h"
#include "text/subword/subword_model.h"
#include "text/subword/token_decoder.h"
#include "text/subword/vocabulary.h"

namespace transept {

class SentencePieceSubword final : public SubwordModel {
 public:
  struct Parts {
    std::unique_ptr<SentencePieceModel> pieces;
    Vocabulary vocabulary;  // how the checkpoint's ids are spelled
    int32_t unk_id = 0;     // the checkpoint's
    // The checkpoint's id of each piece. Empty: `vocabulary` is a vocab.json, and gives ids by spelling, also for
    // pieces that the model lacks.
    std::vector<int32_t> id_of_piece;
    bool language_code_first = false;  // a text may begin with a token such as ">>fra<<", which is not cut
  };

  // REQUIRES: as many ids as pieces, or none; each in the vocabulary.
  explicit SentencePieceSubword(Parts parts);

  const Vocabulary& vocabulary() const override { return parts_.vocabulary; }
  // Makes a decoder: "▁" is a space; "<0x41>" is a byte, if the model has such pieces. Drops the first space at the
  // beginning of a text or, with `trims`, all spaces at its beginning and end.
  std::unique_ptr<TokenDecoder> make_decoder(bool trims) const;

  // Counts the ordinary pieces of the model, and those that the vocabulary has.
  struct Agreement {
    int32_t known = 0, all = 0;
  };
  Agreement agreement() const;

  // Cuts each word as a text of its own. Errors: those of SentencePieceModel::append_ids.
  Status append_ids(const Words& words, std::vector<int32_t>& ids) const override;

 private:
  Status append_text_ids(std::string_view text, std::vector<int32_t>& ids) const;

  Parts parts_;
  bool vocabulary_knows_more_ = false;
};

}  // namespace transept
