// What the two sides of a transfer share: the name of an input, times, and when a message is said again. Values.
//
//   sender (ec_sender.h)                      receiver (ec_receiver.h)
//   announced  --- metadata (2) ----------->  room? waiting, reserved, or a hit
//   granted    <-- allocation (0) ----------
//   sending    --- cache (3) -------------->  receiving (ec_intake.h takes the bytes)
//   done       <-- injection (1) -----------  injected
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/clock.h"
#include "encoder_cache/ec_types.h"

namespace transept {

// An input of a request; an EcKey without the attempt.
struct EcInput {
  std::string request_id;
  uint32_t input_id = 0;

  bool operator==(const EcInput&) const = default;
  // clang-tidy 14 takes the 0 that `a < b` compares with for a null pointer.
  auto operator<=>(const EcInput&) const = default;  // NOLINT(modernize-use-nullptr)
  template <typename H>
  friend H AbslHashValue(H state, const EcInput& input) {
    return H::combine(std::move(state), input.request_id, input.input_id);
  }
};

inline EcInput input_of(const EcKey& key) { return {key.request_id, key.input_id}; }

// Both sides must agree on `lease`; the others are each side's own.
struct EcTimes {
  Duration first_retry = std::chrono::milliseconds(200);  // a message without an answer is said again; doubles
  Duration max_retry = std::chrono::seconds(5);
  int32_t max_unanswered = 3;                 // messages said again without an answer, until the peer counts as gone
  int32_t max_unfinished = 3;                 // answers that bytes are missing, until they are sent again
  int32_t max_new_attempts = 2;               // after the first
  Duration lease = std::chrono::seconds(30);  // of a receiver's room; every message of the sender renews it
  Duration unclaimed = std::chrono::seconds(60);  // how long an injected output waits for its request

  // Two of three messages may be lost before a lease ends.
  Duration renewal() const { return lease / 3; }
  Duration longest_retry() const { return std::min(max_retry, renewal()); }
  Duration tombstone() const { return 2 * lease; }  // how long a receiver remembers how a transfer ended
};

// Times of a message that is said again until it is answered: doubling, with jitter of a quarter, so that many senders
// do not speak at once. The seed makes the jitter; equal seeds give equal times.
class EcRetryTimer {
 public:
  EcRetryTimer(const EcTimes& times, uint64_t seed) : times_(times), random_(seed), interval_(times.first_retry) {}

  void restart(TimePoint now) {
    interval_ = times_.first_retry;
    at_ = now + jittered(interval_);
  }
  void back_off(TimePoint now) {
    interval_ = std::min(2 * interval_, times_.longest_retry());
    at_ = now + jittered(interval_);
  }
  void restart_at(TimePoint time) {
    interval_ = times_.first_retry;
    at_ = time;
  }
  // For an answer that follows by itself: the message is said again only in case that it is lost.
  void push_back(TimePoint now) { at_ = now + jittered(times_.longest_retry()); }
  void stop() { at_ = TimePoint::max(); }
  TimePoint at() const { return at_; }

 private:
  Duration jittered(Duration interval) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX; the upper bits are good
    const auto part = static_cast<Duration::rep>(random_ >> 48);      // of 65536
    return interval * 3 / 4 + interval / 2 * part / 65536;
  }

  EcTimes times_;
  uint64_t random_;
  Duration interval_;
  TimePoint at_ = TimePoint::max();
};

}  // namespace transept
