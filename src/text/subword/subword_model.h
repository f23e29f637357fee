// The model of a tokenizer: turns the words of the pre-tokenizer into ids (byte-pair encoding, unigram, SentencePiece,
// bytes). Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/subword/vocabulary.h"
#include "text/unicode/text_range.h"

namespace transept {

// A text and its words, in order.
struct Words {
  std::string text;  // valid UTF-8
  std::vector<TextRange> ranges;
  bool at_front = false;  // the text begins where the whole text does: a word at 0 is the very first
};

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;

  virtual const Vocabulary& vocabulary() const = 0;

  // Appends the ids of each word. What becomes of unknown characters is the model's rule: an unknown token, bytes,
  // nothing, or an error. Errors: kInvalidArgument: a character that needs an unknown token, and there is none, or a
  // word that is too long; kResourceExhausted: the text grows too much (SentencePiece).
  virtual Status append_ids(const Words& words, std::vector<int32_t>& ids) const = 0;
};

}  // namespace transept
