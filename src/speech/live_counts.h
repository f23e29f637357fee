// What all live sessions of a host have done, in numbers. LiveCounts is a value, LiveTally thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace transept {

// Sums since the host was made.
enum class LiveCount : uint8_t {
  kSessions,        // opened
  kHypotheses,      // answered
  kLostHypotheses,  // refused by a full queue, failed, or overtaken by the end of their item
  kCompleted,       // items with a transcript
  kFailed,          // items that were committed and have none
  kDropped,         // items that ended without a commit
  kEarlyFinals,     // transcripts begun before the end of their turn was certain, and used
  kRevised,         // transcripts that do not begin with what was told
  kWordsTold,       // before the commit
  kWordsRevised,    // of these
  kAudioMs,         // heard
  kNum              // how many there are
};

template <typename Number>
class LiveNumbers {
 public:
  const Number& operator[](LiveCount which) const { return numbers_[static_cast<size_t>(which)]; }
  Number& operator[](LiveCount which) { return numbers_[static_cast<size_t>(which)]; }

 private:
  std::array<Number, static_cast<size_t>(LiveCount::kNum)> numbers_{};
};

using LiveCounts = LiveNumbers<int64_t>;

class LiveTally final : public LiveNumbers<std::atomic<int64_t>> {
 public:
  LiveCounts counts() const {
    LiveCounts counts;
    for (size_t i = 0; i < static_cast<size_t>(LiveCount::kNum); ++i) {
      counts[static_cast<LiveCount>(i)] = (*this)[static_cast<LiveCount>(i)];
    }
    return counts;
  }
};

}  // namespace transept
