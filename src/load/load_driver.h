// Sends requests by a plan, from num_workers threads, and records what happened.
//
// Open loop: requests are due at times that do not depend on the server. If a request is sent late because every thread
// is busy, its latency still counts from when it was due: otherwise a server that stalls would keep the client from
// sending during the stall (coordinated omission). Closed loop: num_workers clients, each of which sends its next
// request when the last one is answered; latency counts from sending.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "load/arrivals.h"
#include "load/exchange.h"

namespace transept {

// The server under load. Tests have their own.
class Target {
 public:
  // One thread's connection to the target.
  class Worker {
   public:
    virtual ~Worker() = default;
    // Prepares request `index`, so that send() only sends.
    virtual void prepare(int64_t index) = 0;
    // Sends the request and waits for its answer. Fills in everything but `due`.
    virtual Exchange send() = 0;
  };

  virtual ~Target() = default;
  virtual std::unique_ptr<Worker> make_worker() = 0;  // on the driver's thread
};

// Thread-safe.
class LoadClock : public Clock {
 public:
  // Sleeps. May return early; the caller then calls again.
  virtual void sleep_until(TimePoint time) const = 0;
};

class SteadyLoadClock final : public LoadClock {
 public:
  TimePoint now() const override { return SteadyClock().now(); }
  void sleep_until(TimePoint time) const override;  // at most 50 ms, so that the sleeper can be told to stop
};

struct LoadPlan {
  static constexpr int64_t kMaxRequests = int64_t{1} << 24;

  int64_t num_requests = kMaxRequests;
  int64_t first_index = 0;           // requests are numbered from here
  std::optional<Duration> duration;  // no request is due (closed loop: sent) after that
  bool is_open_loop = true;
  double request_rate = Arrivals::kAllAtOnce;  // per second; open loop
  int num_workers = 1;                         // at most this many in flight, one thread each
  uint64_t seed = 0;                           // of the arrivals

  std::function<bool()> is_stopped;  // true: nothing more is sent; called from every thread
  // Called after every answer, one call at a time: the number of answers, and of failures among them.
  std::function<void(int64_t num_done, int64_t num_failed)> on_done;
};

struct LoadResult {
  std::vector<Exchange> exchanges;  // in the order in which they ended
  Duration duration{};              // from the start to the last answer
  int max_in_flight = 0;
};

LoadResult run_load(const LoadPlan& plan, Target& target, const LoadClock& clock);

}  // namespace transept
