// The unigram model of a tokenizer.json: each word by itself is cut into the most likely pieces. Immutable, so
// thread-safe. Source: models/unigram of Hugging Face's tokenizers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/subword_model.h"
#include "text/unigram.h"
#include "text/vocabulary.h"

namespace transept {

class UnigramModel final : public SubwordModel {
 public:
  static constexpr size_t kMaxPieceBytes = 1024;  // bounds the time of a search; published ones have some 50

  // The member "model" of a tokenizer.json. Errors name the field: a piece without a score, an unk_id beyond the list,
  // a piece of more than kMaxPieceBytes.
  static StatusOr<std::unique_ptr<UnigramModel>> parse(const JsonField& model);

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  // Errors: an unknown character where the file has no unk_id.
  Status append_ids(const Words& words, std::vector<int32_t>& ids) const override;

 private:
  using Search = UnigramSearch<double>;

  UnigramModel(Vocabulary vocabulary, Search search, bool byte_fallback);

  void append_unknown(std::string_view run, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  Search search_;
  bool byte_fallback_;                   // unknown characters become <0xNN> where the vocabulary has all of them
  std::array<int32_t, 256> id_of_byte_;  // <0xNN>; -1: none
};

}  // namespace transept
