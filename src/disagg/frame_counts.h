// What a connector refused or dropped: counters for metrics (transept_ec_frames_refused_total). Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "encoder_cache/ec_frame.h"

namespace transept {

struct FrameCounts {
  static constexpr size_t kNumFaults = 8;
  std::array<std::atomic<int64_t>, kNumFaults> refused{};  // by EcFrameFault
  std::atomic<int64_t> num_unknown_senders{0};             // no record has the incarnation
  std::atomic<int64_t> num_unreserved{0};                  // chunks of no open sink
  std::atomic<int64_t> num_gaps{0};                        // chunks after missing ones
  std::atomic<int64_t> num_outbox_full{0};                 // messages that were not even queued
  std::atomic<int64_t> num_unsent{0};                      // messages that the broker refused

  int64_t num_refused(EcFrameFault fault) const { return refused[static_cast<size_t>(fault)]; }
  void refuse(EcFrameFault fault) { ++refused[static_cast<size_t>(fault)]; }
  static_assert(static_cast<size_t>(EcFrameFault::kField) + 1 == kNumFaults);
};

}  // namespace transept
