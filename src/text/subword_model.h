// The middle of a tokenizer: turns the words that the pre-tokenizer made into ids. Byte-pair encoding is one; others
// (unigram) plug in here. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/text_range.h"
#include "text/vocabulary.h"

namespace transept {

// A text and the words in it, in order.
struct Words {
  std::string text;  // valid UTF-8
  std::vector<TextRange> ranges;
  bool at_front = false;  // the text begins where the whole text does, so a word at 0 is the very first
};

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;

  virtual const Vocabulary& vocabulary() const = 0;

  // Appends the ids of each word. Errors: a character that the vocabulary can write in no way.
  virtual Status append_ids(const Words& words, std::vector<int32_t>& ids) const = 0;
};

}  // namespace transept
