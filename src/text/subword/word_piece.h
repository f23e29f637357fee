// The WordPiece model of a tokenizer.json (BERT's): cuts each word from its front into the longest pieces that the
// vocabulary has; pieces behind the first begin with a prefix there ("##ing"). Immutable, so thread-safe. Source:
// models/wordpiece of Hugging Face's tokenizers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/subword/piece_trie.h"
#include "text/subword/subword_model.h"
#include "text/subword/vocabulary.h"

namespace transept {

class WordPieceModel final : public SubwordModel {
 public:
  static constexpr size_t kMaxPieceBytes = 1024;  // bounds the time of a search

  // Parses the member "model" of a tokenizer.json: vocab, unk_token, continuing_subword_prefix,
  // max_input_chars_per_word. Errors name the field: those of Vocabulary::parse; a piece of more than kMaxPieceBytes; a
  // limit below 0.
  static StatusOr<std::unique_ptr<WordPieceModel>> parse(const JsonField& model);

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  // A word that cannot be cut whole, or has more characters than the limit, is one unknown token. Errors:
  // kInvalidArgument: there is such a word, and the vocabulary has no unk_token.
  Status append_ids(const Words& words, std::vector<int32_t>& ids) const override;

 private:
  WordPieceModel(Vocabulary vocabulary, PieceTrie first, PieceTrie rest, std::optional<int32_t> unk_id,
                 int64_t max_characters)
      : vocabulary_(std::move(vocabulary)),
        first_(std::move(first)),
        rest_(std::move(rest)),
        unk_id_(unk_id),
        max_characters_(max_characters) {}

  bool append_pieces(std::string_view word, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  PieceTrie first_;  // of a word's first piece: any
  PieceTrie rest_;   // of the others, without the prefix
  std::optional<int32_t> unk_id_;
  int64_t max_characters_;
};

}  // namespace transept
