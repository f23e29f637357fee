// The driver with a target that answers when the test wants, and mostly on a clock that only moves when somebody
// sleeps: with one thread every time is exact.
#include "load/load_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "base/mutex.h"

namespace transept {
namespace {

constexpr Duration kMs = std::chrono::milliseconds(1);

class SleepingClock final : public LoadClock {
 public:
  TimePoint now() const override { return clock_.now(); }
  void sleep_until(TimePoint time) const override { clock_.advance(std::max(time - now(), Duration::zero())); }

 private:
  mutable FakeClock clock_;
};

// Every answer takes `takes(index)`.
class FakeTarget final : public Target {
 public:
  FakeTarget(const LoadClock& clock, std::function<Duration(int64_t)> takes)
      : clock_(clock), takes_(std::move(takes)) {}

  std::unique_ptr<Worker> make_worker() override { return std::make_unique<FakeWorker>(*this); }
  const std::multiset<int64_t>& indices() const { return indices_; }
  int num_failing_from = 1 << 30;

 private:
  class FakeWorker final : public Worker {
   public:
    explicit FakeWorker(FakeTarget& target) : target_(target) {}
    void prepare(int64_t index) override { index_ = index; }
    Exchange send() override {
      Exchange exchange;
      exchange.sent = target_.clock_.now();
      const TimePoint until = exchange.sent + target_.takes_(index_);
      while (target_.clock_.now() < until) target_.clock_.sleep_until(until);
      exchange.end = target_.clock_.now();
      exchange.status = 200;
      if (index_ >= target_.num_failing_from) exchange.failure = "HTTP 500";
      const MutexLock lock(target_.mutex_);
      target_.indices_.insert(index_);
      return exchange;
    }

   private:
    FakeTarget& target_;
    int64_t index_ = -1;
  };

  const LoadClock& clock_;
  std::function<Duration(int64_t)> takes_;
  Mutex mutex_;
  std::multiset<int64_t> indices_ ABSL_GUARDED_BY(mutex_);
};

std::multiset<int64_t> range(int64_t first, int64_t count) {
  std::multiset<int64_t> all;
  for (int64_t i = 0; i < count; ++i) all.insert(first + i);
  return all;
}

// The server stalls on the second request. Those behind it are sent late, and that is in their latency.
TEST(LoadDriverTest, AnOpenLoopCountsFromWhenRequestsWereDue) {
  const SleepingClock clock;
  FakeTarget target(clock, [](int64_t index) { return index == 1 ? 10000 * kMs : kMs; });
  const LoadPlan plan{.num_requests = 20, .request_rate = 10, .seed = 3};
  const LoadResult result = run_load(plan, target, clock);
  ASSERT_EQ(result.exchanges.size(), 20u);
  Arrivals arrivals(10, 3);
  TimePoint idle_from = TimePoint{};
  for (size_t i = 0; i < 20; ++i) {
    const Exchange& exchange = result.exchanges[i];
    EXPECT_EQ(exchange.due, TimePoint{} + arrivals.next()) << i;
    EXPECT_EQ(exchange.sent, std::max(exchange.due, idle_from)) << i;
    idle_from = exchange.end;
  }
  EXPECT_GT(result.exchanges[2].end - result.exchanges[2].due, 9000 * kMs);
  EXPECT_EQ(result.duration, idle_from - TimePoint{});
  EXPECT_EQ(result.max_in_flight, 1);
}

TEST(LoadDriverTest, AClosedLoopCountsFromSending) {
  const SleepingClock clock;
  FakeTarget target(clock, [](int64_t) { return 7 * kMs; });
  const LoadPlan plan{.num_requests = 5, .first_index = 100, .is_open_loop = false};
  const LoadResult result = run_load(plan, target, clock);
  ASSERT_EQ(result.exchanges.size(), 5u);
  for (const Exchange& exchange : result.exchanges) EXPECT_EQ(exchange.end - exchange.due, 7 * kMs);
  EXPECT_EQ(result.duration, 35 * kMs);
  EXPECT_EQ(target.indices(), range(100, 5));
}

TEST(LoadDriverTest, NothingIsDueAfterTheDuration) {
  const SleepingClock clock;
  FakeTarget target(clock, [](int64_t) { return 30 * kMs; });
  LoadPlan plan{.duration = 100 * kMs, .is_open_loop = false};
  const LoadResult closed = run_load(plan, target, clock);
  EXPECT_EQ(closed.exchanges.size(), 4u) << "sent after 0, 30, 60 and 90 ms";
  EXPECT_EQ(closed.duration, 120 * kMs);

  const SleepingClock other_clock;
  FakeTarget other(other_clock, [](int64_t) { return 30 * kMs; });
  plan = {.duration = 10000 * kMs, .request_rate = 100, .seed = 1};
  int num_due = 0;
  for (Arrivals arrivals(100, 1); arrivals.next() < *plan.duration;) ++num_due;
  const LoadResult open = run_load(plan, other, other_clock);
  EXPECT_EQ(open.exchanges.size(), static_cast<size_t>(num_due)) << "late ones are sent all the same";
  for (const Exchange& exchange : open.exchanges) EXPECT_LT(exchange.due - TimePoint{}, *plan.duration);
}

TEST(LoadDriverTest, StoppingSendsNothingMore) {
  const SleepingClock clock;
  FakeTarget target(clock, [](int64_t) { return kMs; });
  int64_t num_done = 0, num_failed = 0;
  target.num_failing_from = 2;
  LoadPlan plan{.num_requests = 50, .request_rate = 5};
  plan.on_done = [&](int64_t done, int64_t failed) {
    num_done = done;
    num_failed = failed;
  };
  plan.is_stopped = [&] { return num_done == 3; };
  EXPECT_EQ(run_load(plan, target, clock).exchanges.size(), 3u);
  EXPECT_EQ(num_failed, 1);
}

// On the real clock: as many at once as there are threads, all of them at work, every request once.
TEST(LoadDriverTest, ThreadsShareTheRequests) {
  const SteadyLoadClock clock;
  std::atomic<int> num_inside{0};
  FakeTarget target(clock, [&](int64_t) {
    // The first eight wait for one another: they can only end if all are sent at once.
    ++num_inside;
    while (num_inside < 8) std::this_thread::yield();
    return Duration::zero();
  });
  const LoadPlan plan{.num_requests = 200, .num_workers = 8};
  const LoadResult result = run_load(plan, target, clock);
  EXPECT_EQ(result.exchanges.size(), 200u);
  EXPECT_EQ(target.indices(), range(0, 200));
  EXPECT_EQ(result.max_in_flight, 8);
}

TEST(LoadDriverTest, NoMoreThreadsThanRequests) {
  const SteadyLoadClock clock;
  FakeTarget target(clock, [](int64_t) { return Duration::zero(); });
  const LoadPlan plan{.num_requests = 2, .num_workers = 1000};
  EXPECT_EQ(run_load(plan, target, clock).exchanges.size(), 2u);
}

TEST(LoadDriverTest, RequestsAreNotSentBeforeTheyAreDue) {
  const SteadyLoadClock clock;
  FakeTarget target(clock, [](int64_t) { return Duration::zero(); });
  const LoadPlan plan{.num_requests = 30, .request_rate = 300, .num_workers = 4, .seed = 5};
  for (const Exchange& exchange : run_load(plan, target, clock).exchanges) EXPECT_GE(exchange.sent, exchange.due);
}

}  // namespace
}  // namespace transept
