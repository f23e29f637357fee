// Tracks the requests whose bodies are still arriving. They hold no place in the queue, which is for whole requests. If
// there are more of them than a small share of the queue, each new one evicts the slowest, so that clients that send a
// byte a minute cannot keep others out. A body that comes with its head is not tracked.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "net/http_server.h"
#include "server/metrics.h"

namespace transept {

// Owned by Server. Thread-safe. Outlives its places.
class IncomingRequests final {
  struct Entry;

 public:
  struct Options {
    int32_t max_requests = 512;           // a new one evicts the slowest, young or not; if none is slow it is refused
    int32_t max_unhurried = 128;          // a new one evicts slow ones, the slowest first, until there are fewer
    int32_t max_unhurried_per_peer = 64;  // the same for one address
    int32_t max_requests_per_peer = 256;  // as max_requests, so that other addresses find places
  };
  // A body is slow if its rate over the last seconds is below kSlowBytesPerSecond, and its head came at least kGrace
  // ago. Where all places are taken, kGrace is not waited for: many that come at once and bring nothing would keep out
  // who comes after them.
  static constexpr double kSlowBytesPerSecond = 64 << 10;
  // Counted as if they had come with the head. Of bodies without bytes the oldest is then the slowest, and none
  // is slow in its first 16 ms.
  static constexpr double kHeadBytes = 1 << 10;
  static constexpr Duration kGrace = std::chrono::milliseconds(250);

  // Borrows `metrics` and `clock`.
  IncomingRequests(const Options& options, ServerMetrics& metrics, const Clock& clock)
      : options_(options), metrics_(metrics), clock_(clock) {}

  // One arriving body, until it is whole or dropped.
  class Place final {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    // Records that `num_bytes` of the body have arrived so far.
    void note(size_t num_bytes);

   private:
    friend class IncomingRequests;
    Place(IncomingRequests& incoming, std::list<Entry>::iterator entry) : incoming_(incoming), entry_(entry) {}
    IncomingRequests& incoming_;
    std::list<Entry>::iterator entry_;
  };

  // Adds a body. Null: there is no room. While `peer`, or all peers together, have as many as may be slow, the slowest
  // of them is evicted (answered 429 with its `headers`) if it is slow; while they have as many as may be at all, also
  // before its kGrace.
  std::unique_ptr<Place> enter(const std::string& peer, std::shared_ptr<IncomingBody> body, HttpHeaders headers = {});
  // Evicts the slowest of all, to free memory. False: none is slow.
  bool dismiss_slowest();

  int32_t num_incoming() const;

 private:
  // The number of bytes that had arrived at a time.
  struct Mark {
    TimePoint time{};
    size_t num_bytes = 0;
  };
  struct Entry {
    std::string peer;
    std::shared_ptr<IncomingBody> body;
    HttpHeaders headers;
    TimePoint begin{}, last{};  // when its head and its last bytes arrived
    size_t num_bytes = 0;
    Mark older, newer;  // at least a second apart, while bytes arrive
    bool is_dismissed = false;
  };

  int32_t count() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int32_t>(entries_.size()) - num_dismissed_;
  }
  void report() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // peer: null for all.
  bool dismiss_slowest_of(const std::string* peer, Duration grace) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static double bytes_per_second(const Entry& entry, TimePoint now);

  const Options options_;
  ServerMetrics& metrics_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // dismissed ones stay until their places are destroyed
  int32_t num_dismissed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace transept
