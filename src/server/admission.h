// Which requests may wait: a bounded number whose bodies are whole, and budgets of bytes of bodies, tokens and seconds
// of audio for what is being worked on. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace transept {

class Admission final {
 public:
  struct Options {
    int32_t max_requests = 512;                 // that wait, be it for a thread or the engine
    int64_t max_tokens = int64_t{1} << 22;      // of prompts, encoder and decoder, in work
    double max_audio_seconds = 16 * 3600;       // of audio in work
    int64_t max_body_bytes = int64_t{1} << 30;  // of bodies, as far as they have come, until they are answered
  };

  // `num_queued` says how many wait inside the engine. Borrows the clock.
  Admission(const Options& options, std::function<int32_t()> num_queued, const Clock& clock)
      : options_(options), num_queued_(std::move(num_queued)), clock_(clock) {}

  // Places of requests that have come and that the engine does not count yet. Movable; gives its places back.
  class Places final {
   public:
    Places() = default;
    Places(Places&& other) noexcept : admission_(std::exchange(other.admission_, nullptr)), count_(other.count_) {}
    Places& operator=(Places&& other) noexcept;
    ~Places() { release(); }
    void release();  // the engine counts them now, or they are over

   private:
    friend class Admission;
    Places(Admission* admission, int32_t count) : admission_(admission), count_(count) {}
    Admission* admission_ = nullptr;
    int32_t count_ = 0;
  };
  // Errors: kResourceExhausted (both numbers); more than can ever be had at once: kInvalidArgument.
  StatusOr<Places> take_places(int32_t count);
  // What take_places(1) would say now, without taking any.
  Status check_places() const;

  // What a request's prompts cost until its answer is complete.
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

   private:
    friend class Admission;
    Charge(Admission* admission, int64_t tokens, double seconds, int64_t bytes)
        : admission_(admission), tokens_(tokens), seconds_(seconds), bytes_(bytes) {}
    Admission* admission_ = nullptr;
    int64_t tokens_ = 0;
    double seconds_ = 0;
    int64_t bytes_ = 0;
  };
  // One that is alone is always taken, however large. Errors: kResourceExhausted (what is in work, and the budget).
  StatusOr<Charge> take_budget(int64_t tokens, double audio_seconds);
  // `charge` holds so many seconds of audio from here on: what was found instead of what was taken. Never an error,
  // since the work has begun; the next request sees it.
  void charge_audio(Charge& charge, double audio_seconds);
  // Whether a body of so many bytes would find room now; nothing is charged. Errors as above.
  Status check_body(int64_t bytes) const;
  // `body` is charged `bytes` from here on, as many as have come; what it was charged before counts no more. Errors as
  // above, and nothing changes; with `must`, none.
  Status charge_body(Charge& body, int64_t bytes, bool must = false);

  // A request was answered: the rate of these tells how long to wait.
  void note_answer();
  // Whole seconds after which there should be room: what waits, over the rate of the last 10 s; 1 to 30.
  int retry_after_seconds() const;

  int32_t num_waiting() const;  // here and in the engine
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
