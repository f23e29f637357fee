// What the regular expressions of a tokenizer may cost on one text, however many searches that takes: the thread's own
// processor time, which other work on the machine does not use up. Honest patterns run twenty times as fast.
// Belongs to one call on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace transept {

class SearchBudget final {
 public:
  // `seconds` is for any text; on top comes time by length.
  explicit SearchBudget(size_t text_bytes, double seconds = 0.5);

  // To be called before each attempt at a match: looks at the clock now and then. False: the time is up.
  bool spend_attempt();

  // Looks at the clock.
  bool exhausted() const;

 private:
  double deadline_;
  uint32_t num_attempts_ = 0;
};

}  // namespace transept
