// A word of memory that processes share, on which a thread sleeps until another one rings. Linux's futex.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace transept {

// A bell: a thread that waits for a condition reads the count, looks at the condition, and sleeps while the count is
// the same. Zero bytes are a bell that was never rung. Thread-safe, across processes.
struct Bell {
  std::atomic<uint32_t> count{0};
  std::atomic<uint32_t> num_sleepers{0};

  // Wakes those that sleep. Call after the condition holds, stored with memory_order_seq_cst.
  void ring();
  // Wakes them also if they are about to sleep, whatever they have counted.
  void ring_all();
  // Returns when rung since `seen`, at `until`, or for no reason. REQUIRES: the caller is among num_sleepers, and has
  // looked at the condition after `seen` was read.
  void sleep(uint32_t seen, TimePoint until);
};

static_assert(std::atomic<uint32_t>::is_always_lock_free, "words are shared with other processes");

}  // namespace transept
