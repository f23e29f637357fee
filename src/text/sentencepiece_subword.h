// The pieces of a SentencePiece model under the ids that a checkpoint gives them. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "text/sentencepiece.h"
#include "text/subword_model.h"
#include "text/token_decoder.h"
#include "text/vocabulary.h"

namespace transept {

class SentencePieceSubword final : public SubwordModel {
 public:
  struct Parts {
    std::unique_ptr<SentencePieceModel> pieces;
    Vocabulary vocabulary;  // how the checkpoint's ids are spelled
    int32_t unk_id = 0;     // the checkpoint's
    // The checkpoint's id of each piece. Empty: the vocabulary is a vocab.json, which gives them by their spelling, and
    // may know what the model does not.
    std::vector<int32_t> id_of_piece;
    bool language_code_first = false;  // a text may begin with a token such as ">>fra<<" that is not to be cut
  };

  // REQUIRES: as many ids as pieces, or none; each in the vocabulary.
  explicit SentencePieceSubword(Parts parts);

  const Vocabulary& vocabulary() const override { return parts_.vocabulary; }
  // How tokens of this model are decoded: "▁" is a space; "<0x41>" is a byte, where the model has such pieces. Of the
  // spaces at the very beginning the first is left out or, with `trims`, all of them and those at the end.
  std::unique_ptr<TokenDecoder> make_decoder(bool trims) const;

  // How many of the model's ordinary pieces the vocabulary knows, and how many there are.
  struct Agreement {
    int32_t known = 0, all = 0;
  };
  Agreement agreement() const;

  // Each word is cut as a text of its own.
  Status append_ids(const Words& words, std::vector<int32_t>& ids) const override;

 private:
  Status append_text_ids(std::string_view text, std::vector<int32_t>& ids) const;

  Parts parts_;
  bool vocabulary_knows_more_ = false;
};

}  // namespace transept
