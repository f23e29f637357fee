// Drafts what followed the last tokens when they stood before: in the sequence's own tokens, or in the encoder's input
// (names, numbers, copied sentences). vLLM's method "ngram". The longest run of `max` to `min` tokens that is found
// wins; of several places the latest, and the sequence's own before the input's.
#pragma once

#include "speculation/drafter.h"

namespace transept {

class NgramDrafter final : public Drafter {
 public:
  // REQUIRES: 1 <= min <= max.
  NgramDrafter(int32_t min, int32_t max) : min_(min), max_(max) {}

  void propose(const DraftAsk& ask, DraftMemory& memory, std::vector<int32_t>& draft) override;

 private:
  int32_t min_, max_;
};

}  // namespace transept
