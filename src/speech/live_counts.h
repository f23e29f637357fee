// What all live sessions of a host have done, in numbers. LiveCounts is a value, LiveTally thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace transept {

// Sums since the host was made.
struct LiveCounts {
  int64_t num_sessions = 0;         // opened
  int64_t num_hypotheses = 0;       // answered
  int64_t num_lost_hypotheses = 0;  // refused by a full queue, failed, or overtaken by the end of their item
  int64_t num_completed = 0;        // items with a transcript
  int64_t num_failed = 0;           // items that were committed and have none
  int64_t num_dropped = 0;          // items that ended without a commit
  int64_t num_early_finals = 0;     // transcripts begun before the end of their turn was certain, and used
  int64_t num_revised = 0;          // transcripts that do not begin with what was told
  int64_t num_words_told = 0;       // before the commit
  int64_t num_words_revised = 0;    // of these
  int64_t audio_ms = 0;             // heard
};

struct LiveTally {
  std::atomic<int64_t> sessions{0}, hypotheses{0}, lost_hypotheses{0}, completed{0}, failed{0}, dropped{0};
  std::atomic<int64_t> early_finals{0}, revised{0}, words_told{0}, words_revised{0}, audio_ms{0};

  LiveCounts counts() const {
    return {.num_sessions = sessions,
            .num_hypotheses = hypotheses,
            .num_lost_hypotheses = lost_hypotheses,
            .num_completed = completed,
            .num_failed = failed,
            .num_dropped = dropped,
            .num_early_finals = early_finals,
            .num_revised = revised,
            .num_words_told = words_told,
            .num_words_revised = words_revised,
            .audio_ms = audio_ms};
  }
};

}  // namespace transept
