// Sends requests by a plan, each on a thread, and notes what happened.
//
// Open loop: requests are due at times that do not ask how the server is doing. If one is sent late, because every
// thread is at work on another, its latency still counts from when it was due: otherwise a server that stalls would
// keep the client from asking just while it stalls (coordinated omission). Closed loop: so many clients, each of which
// sends its next request when the last one is answered; latency counts from sending.
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

// Whom the load is for. Tests have their own.
class Target {
 public:
  // One thread's way to it.
  class Worker {
   public:
    virtual ~Worker() = default;
    // Makes request `index` ready, so that send() sends and does nothing else.
    virtual void prepare(int64_t index) = 0;
    // Sends it and waits for its answer. Fills in everything but `due`.
    virtual Exchange send() = 0;
  };

  virtual ~Target() = default;
  virtual std::unique_ptr<Worker> make_worker() = 0;  // the driver's thread
};

// Thread-safe.
class LoadClock : public Clock {
 public:
  // Sleeps; may return early, then the caller asks again.
  virtual void sleep_until(TimePoint time) const = 0;
};

class SteadyLoadClock final : public LoadClock {
 public:
  TimePoint now() const override { return SteadyClock().now(); }
  void sleep_until(TimePoint time) const override;  // at most 50 ms, so that a waiting thread can be told to stop
};

struct LoadPlan {
  static constexpr int64_t kMaxRequests = int64_t{1} << 24;

  int64_t num_requests = kMaxRequests;
  int64_t first_index = 0;           // requests are numbered from here
  std::optional<Duration> duration;  // none is due (closed loop: sent) after that
  bool is_open_loop = true;
  double request_rate = Arrivals::kAllAtOnce;  // per second; open loop
  int num_workers = 1;                         // requests in flight at most, and threads
  uint64_t seed = 0;                           // of the arrivals

  std::function<bool()> is_stopped;  // true: nothing more is sent; asked from every thread
  // After every answer, one at a time: how many there were, how many of them failed.
  std::function<void(int64_t num_done, int64_t num_failed)> on_done;
};

struct LoadResult {
  std::vector<Exchange> exchanges;  // in the order of their ends
  Duration duration{};              // from the start to the last answer
  int max_in_flight = 0;
};

LoadResult run_load(const LoadPlan& plan, Target& target, const LoadClock& clock);

}  // namespace transept
