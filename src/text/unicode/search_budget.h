// The time that the regular expressions of a tokenizer may take on one text, over all searches. It is processor time of
// the calling thread, so other work on the machine does not use it up. Honest patterns need a twentieth of it. Used by
// one call, on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace transept {

class SearchBudget final {
 public:
  // `seconds` for any text, and 4 microseconds for each byte.
  explicit SearchBudget(size_t text_bytes, double seconds = 0.5);

  // Call before each attempt at a match. Reads the clock at every 16th call. False: the time is up.
  bool spend_attempt();

  // Reads the clock. True: the time is up.
  bool exhausted() const;

 private:
  double deadline_;
  uint32_t num_attempts_ = 0;
};

}  // namespace transept
