#include "speculation/text_drafter.h"

#include <algorithm>

namespace transept {
namespace {

constexpr int32_t kMostLost = 3;        // tokens after a difference for which one is taken to stand for one
constexpr int32_t kMostSkipped = 1024;  // tokens of the text that a search looks at

// The token behind the last two of the output where these stand at or after the old place; -1: nowhere near.
int32_t find_again(std::span<const int32_t> text, int32_t place, int32_t before, int32_t last) {
  const auto end = static_cast<int32_t>(std::min<int64_t>(std::ssize(text), int64_t{place} + kMostSkipped));
  for (int32_t i = std::max(place, 1); i < end; ++i) {
    if (text[static_cast<size_t>(i)] == last && text[static_cast<size_t>(i) - 1] == before) return i + 1;
  }
  return -1;
}

// Follows the text by the output's next token.
void follow(std::span<const int32_t> text, std::span<const int32_t> output, DraftMemory& memory) {
  const int32_t token = output[static_cast<size_t>(memory.num_seen++)];
  const int64_t expected = int64_t{memory.place} + memory.num_lost;
  if (expected < std::ssize(text) && text[static_cast<size_t>(expected)] == token) {
    memory.place = static_cast<int32_t>(expected) + 1;
    memory.num_lost = 0;
    return;
  }
  ++memory.num_lost;
  if (memory.num_seen < 2) return;
  const int32_t found = find_again(text, memory.place, output[static_cast<size_t>(memory.num_seen) - 2], token);
  if (found < 0) return;
  memory.place = found;
  memory.num_lost = 0;
}

}  // namespace

void TextDrafter::propose(const DraftAsk& ask, DraftMemory& memory, std::vector<int32_t>& draft) {
  draft.clear();
  const std::span<const int32_t> text = text_ == Text::kGiven ? ask.given : ask.source, output = ask.output();
  while (memory.num_seen < std::ssize(output)) follow(text, output, memory);
  if (memory.num_lost > kMostLost) return;
  const int64_t begin = int64_t{memory.place} + memory.num_lost;
  const int64_t end = std::min<int64_t>(begin + ask.max_tokens, std::ssize(text));
  if (begin < end) draft.assign(text.begin() + begin, text.begin() + end);
}

}  // namespace transept
