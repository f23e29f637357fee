// Decides which requests may wait: a bounded number of requests with whole bodies, and budgets of body bytes, prompt
// tokens and seconds of audio for requests in work. Owned by Server; outlives its Places and Charges. Admission is
// thread-safe; a Places or a Charge is not.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace transept {

// What Admission counts now.
struct AdmissionLoad {
  int32_t num_waiting = 0;     // requests: places taken, and those that wait in the engine
  int64_t body_bytes = 0;      // of bodies and decoded pictures
  int64_t max_body_bytes = 0;  // Options::max_body_bytes
};

class Admission final {
 public:
  struct Options {
    int32_t max_requests = 512;                 // that wait for a thread or in the engine
    int64_t max_tokens = int64_t{1} << 22;      // of prompts in work, encoder and decoder
    double max_audio_seconds = 16 * 3600;       // in work
    int64_t max_body_bytes = int64_t{1} << 30;  // that have arrived, of requests that are not answered
  };

  // `num_queued` returns how many requests wait in the engine. Borrows the clock.
  Admission(const Options& options, std::function<int32_t()> num_queued, const Clock& clock)
      : options_(options), num_queued_(std::move(num_queued)), clock_(clock) {}

  // Places in the queue of requests that the engine does not count yet. Movable; the destructor releases them.
  class Places final {
   public:
    Places() = default;
    Places(Places&& other) noexcept : admission_(std::exchange(other.admission_, nullptr)), count_(other.count_) {}
    Places& operator=(Places&& other) noexcept;
    ~Places() { release(); }
    void release();  // call when the engine counts the requests, or they have ended

   private:
    friend class Admission;
    Places(Admission* admission, int32_t count) : admission_(admission), count_(count) {}
    Admission* admission_ = nullptr;
    int32_t count_ = 0;
  };
  // Takes `count` places. Errors: kResourceExhausted if the queue is full (both numbers), kInvalidArgument if `count`
  // is more than max_requests.
  StatusOr<Places> take_places(int32_t count);
  // Returns kResourceExhausted if the queue has no place for one request now. Takes none.
  Status check_places() const;

  // A request's share of the budgets. Movable; the destructor releases it.
  class Charge final {
   public:
    Charge() = default;
    Charge(Charge&& other) noexcept
        : admission_(std::exchange(other.admission_, nullptr)),
          tokens_(other.tokens_),
          seconds_(other.seconds_),
          bytes_(other.bytes_) {}
    Charge& operator=(Charge&& other) noexcept;
    ~Charge() { release(); }
    void release();
    int64_t bytes() const { return bytes_; }

   private:
    friend class Admission;
    Charge(Admission* admission, int64_t tokens, double seconds, int64_t bytes)
        : admission_(admission), tokens_(tokens), seconds_(seconds), bytes_(bytes) {}
    Admission* admission_ = nullptr;
    int64_t tokens_ = 0;
    double seconds_ = 0;
    int64_t bytes_ = 0;
  };
  // Charges a request's prompts. A request is always admitted if no other uses that budget, whatever its size. Errors:
  // kResourceExhausted (what is in work, and the budget).
  StatusOr<Charge> take_budget(int64_t tokens, double audio_seconds);
  // Replaces the seconds of audio of `charge` by the true length. Cannot fail, as the work has begun; later requests
  // see the new sum.
  void charge_audio(Charge& charge, double audio_seconds);
  // Checks whether a body of `bytes` has room now; charges nothing. Errors: kResourceExhausted.
  Status check_body(int64_t bytes) const;
  // Sets the charge of `body` to `bytes`, the number that has arrived so far. Errors: kResourceExhausted, with no
  // change; never if `must`.
  Status charge_body(Charge& body, int64_t bytes, bool must = false);

  // Records that a request was answered; retry_after_seconds uses the rate.
  void note_answer();
  // Estimates the whole seconds until there is room: waiting requests / rate of answers in the last 10 s, from 1 to 30.
  // Without an answer in that time: 30.
  int retry_after_seconds() const;

  AdmissionLoad load() const;
  int32_t num_waiting() const { return load().num_waiting; }
  const Options& options() const { return options_; }

 private:
  Status check_places(int32_t count, int32_t num_queued) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status check_body_beside(int64_t others, int64_t bytes) const;

  const Options options_;
  const std::function<int32_t()> num_queued_;
  const Clock& clock_;
  mutable Mutex mutex_;
  int32_t num_arriving_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  double audio_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t body_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable std::deque<TimePoint> answers_ ABSL_GUARDED_BY(mutex_);  // of the last 10 s, 1024 at most
};

}  // namespace transept
