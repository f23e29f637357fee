// The interface of what guesses the next tokens of a sequence. A guess may be anything: it costs or saves time, and
// never changes an answer (accept.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace transept {

// What a drafter may look at.
struct DraftAsk {
  std::span<const int32_t> tokens;  // of the sequence: decoder prompt, then output
  int32_t num_prompt = 0;           // of `tokens`
  std::span<const int32_t> source;  // of the encoder's input, if its ids are the decoder's; else empty
  std::span<const int32_t> given;   // the answer that the request expects (SamplingParams::draft_token_ids)
  uint64_t seed = 0;                // of the request
  int32_t index = 0;                // of the sequence in its group
  int32_t max_tokens = 0;           // to propose; > 0

  std::span<const int32_t> output() const { return tokens.subspan(static_cast<size_t>(num_prompt)); }
};

// What a drafter remembers of one sequence. Forgotten with it; may be forgotten at any time.
struct DraftMemory {
  int32_t num_seen = 0;  // tokens of the output
  int32_t place = 0;     // in the text that the output follows
  int32_t num_lost = 0;  // tokens since the output left the text at `place`; 0: it follows
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  // Replaces `draft` by at most ask.max_tokens guesses of the tokens after ask.tokens; none, if it has no guess. Ids
  // may be out of range: the caller cuts there. Allocates nothing but what `draft` lacks. Not thread-safe.
  virtual void propose(const DraftAsk& ask, DraftMemory& memory, std::vector<int32_t>& draft) = 0;
};

}  // namespace transept
