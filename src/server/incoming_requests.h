// Requests whose bodies are on their way. They hold no place in the queue, which is for whole requests; past a small
// share of it each that comes makes the slowest give way, so that clients that send a byte a minute keep no other
// client out. A body that comes with its head is never here.
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

// Thread-safe. Outlives its places.
class IncomingRequests final {
  struct Entry;

 public:
  struct Options {
    int32_t max_requests = 512;           // more are refused
    int32_t max_unhurried = 128;          // of which so many may be slow
    int32_t max_unhurried_per_peer = 64;  // of one address
  };
  // A body is slow that brought less than this a second lately; none is before it has been on its way for so long.
  static constexpr double kSlowBytesPerSecond = 64 << 10;
  static constexpr Duration kGrace = std::chrono::milliseconds(250);

  // Borrows both.
  IncomingRequests(const Options& options, ServerMetrics& metrics, const Clock& clock)
      : options_(options), metrics_(metrics), clock_(clock) {}

  // One body's, from its head until it is whole or dropped.
  class Place final {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    // So many bytes are here by now.
    void note(size_t num_bytes);

   private:
    friend class IncomingRequests;
    Place(IncomingRequests& incoming, std::list<Entry>::iterator entry) : incoming_(incoming), entry_(entry) {}
    IncomingRequests& incoming_;
    std::list<Entry>::iterator entry_;
  };

  // Null: there is no room. Where the peer, or all together, have more than may be slow, the slowest of them is
  // refused (429) if it is slow.
  // `headers` go with that answer.
  std::unique_ptr<Place> enter(const std::string& peer, std::shared_ptr<IncomingBody> body, HttpHeaders headers = {});
  // The same for room of another kind: false if none is slow.
  bool dismiss_slowest();

  int32_t num_incoming() const;

 private:
  // How many bytes had come at a time.
  struct Mark {
    TimePoint time{};
    size_t num_bytes = 0;
  };
  struct Entry {
    std::string peer;
    std::shared_ptr<IncomingBody> body;
    HttpHeaders headers;
    TimePoint begin{}, last{};  // its head came, and the last of its bytes
    size_t num_bytes = 0;
    Mark older, newer;  // a second apart at least, while bytes come
    bool is_dismissed = false;
  };

  int32_t count() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int32_t>(entries_.size()) - num_dismissed_;
  }
  void report() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool dismiss_slowest_of(const std::string* peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // null: of all
  static double bytes_per_second(const Entry& entry, TimePoint now);

  const Options options_;
  ServerMetrics& metrics_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // those that were dismissed stay until their places go
  int32_t num_dismissed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace transept
