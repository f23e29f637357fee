#include "speculation/ngram_drafter.h"

#include <algorithm>

namespace transept {
namespace {

struct Match {
  std::ptrdiff_t end = 0;  // of the run, in the text
  int32_t length = 0;      // 0: none
};

// The latest of the longest runs in text[0, last) that end as `tail` does, of up to `most` tokens.
Match find_tail(std::span<const int32_t> text, std::ptrdiff_t last, std::span<const int32_t> tail, int32_t most) {
  Match best;
  for (std::ptrdiff_t end = last; end > best.length && best.length < most; --end) {
    int32_t length = 0;
    const auto longest = static_cast<int32_t>(std::min<std::ptrdiff_t>({most, end, std::ssize(tail)}));
    while (length < longest &&
           text[static_cast<size_t>(end - 1 - length)] == tail[tail.size() - 1 - static_cast<size_t>(length)]) {
      ++length;
    }
    if (length > best.length) best = {end, length};
  }
  return best;
}

}  // namespace

void NgramDrafter::propose(const DraftAsk& ask, DraftMemory&, std::vector<int32_t>& draft) {
  draft.clear();
  const std::span<const int32_t> own = ask.tokens;
  // What ends with the sequence is the tail itself; a match in the input must leave a token behind it.
  const Match in_own = find_tail(own, std::ssize(own) - 1, own, max_);
  const Match in_source =
      in_own.length >= max_ ? Match() : find_tail(ask.source, std::ssize(ask.source) - 1, own, max_);
  const bool takes_own = in_own.length >= in_source.length;
  const Match& match = takes_own ? in_own : in_source;
  if (match.length < min_) return;
  const std::span<const int32_t> text = takes_own ? own : ask.source;
  const std::ptrdiff_t end = std::min(match.end + ask.max_tokens, std::ssize(text));
  draft.assign(text.begin() + match.end, text.begin() + end);
}

}  // namespace transept
