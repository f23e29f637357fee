// What the sessions of /v1/realtime count for /metrics. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "speech/live_counts.h"

namespace transept {

struct RealtimeCounts {
  // Of client events; "error": those that were refused, whatever their kind.
  enum In : size_t { kUpdate, kAppend, kBinary, kCommit, kClear, kInError, kNumIn };
  static constexpr std::array<std::string_view, kNumIn> kInNames = {"update", "append", "binary",
                                                                    "commit", "clear",  "error"};
  // Of server events. A joined delta is one.
  enum Out : size_t { kSession, kSpeech, kCommitted, kDelta, kHypothesis, kCompleted, kFailed, kOutError, kNumOut };
  static constexpr std::array<std::string_view, kNumOut> kOutNames = {"session",    "speech",    "committed", "delta",
                                                                      "hypothesis", "completed", "failed",    "error"};
  // How items end.
  enum End : size_t { kEndCompleted, kEndFailed, kEndCleared, kNumEnds };
  static constexpr std::array<std::string_view, kNumEnds> kEndNames = {"completed", "failed", "cleared"};

  std::atomic<int64_t> num_sessions{0}, num_opened{0}, num_revised{0}, num_expired{0};
  std::array<std::atomic<int64_t>, kNumIn> in{};
  std::array<std::atomic<int64_t>, kNumOut> out{};
  std::array<std::atomic<int64_t>, kNumEnds> ends{};
  std::atomic<int64_t> paused_us{0};  // for which sockets were not read, as their audio came faster than it was heard
  std::atomic<int64_t> audio_us{0};   // of completed items
};

// At one time, with what live transcription counts itself.
struct RealtimeStats {
  const RealtimeCounts& counts;
  LiveCounts heard;
};

}  // namespace transept
