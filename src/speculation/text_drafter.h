// Drafts from a text that the output is expected to follow: the request's own (a prediction, the last answer to a
// window that has grown), or the encoder's input (correction: "aggressive decoding", Sun et al. 2021, arXiv
// 2106.04970). After a difference it first guesses that one token stands for one. It finds the text again one token
// after a difference of one, or where the last two tokens of the output stand behind the place it had.
#pragma once

#include "speculation/drafter.h"

namespace transept {

class TextDrafter final : public Drafter {
 public:
  enum class Text : uint8_t { kGiven, kSource };
  explicit TextDrafter(Text text) : text_(text) {}

  void propose(const DraftAsk& ask, DraftMemory& memory, std::vector<int32_t>& draft) override;

 private:
  Text text_;
};

}  // namespace transept
