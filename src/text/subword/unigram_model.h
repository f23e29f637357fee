// The unigram model of a tokenizer.json: cuts each word into its most likely pieces. Immutable, so thread-safe. Source:
// models/unigram of Hugging Face's tokenizers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/subword/subword_model.h"
#include "text/subword/unigram.h"
#include "text/subword/vocabulary.h"

namespace transept {

class UnigramModel final : public SubwordModel {
 public:
  static constexpr size_t kMaxPieceBytes = 1024;  // bounds the time of a search; published pieces have about 50

  // Parses the member "model" of a tokenizer.json. Errors name the field: a piece without a finite score, a piece of
  // more than kMaxPieceBytes, an unk_id beyond the list, over kMaxVocabSize pieces.
  static StatusOr<std::unique_ptr<UnigramModel>> parse(const JsonField& model);

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  // Errors: kInvalidArgument: an unknown character, and the file has no unk_id.
  Status append_ids(const Words& words, std::vector<int32_t>& ids) const override;

 private:
  using Search = UnigramSearch<double>;

  UnigramModel(Vocabulary vocabulary, Search search, bool byte_fallback);

  void append_unknown(std::string_view run, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  Search search_;
  bool byte_fallback_;                   // unknown characters become <0xNN>, if the vocabulary has all their bytes
  std::array<int32_t, 256> id_of_byte_;  // <0xNN>; -1: none
};

}  // namespace transept
