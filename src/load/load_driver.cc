#include "load/load_driver.h"

#include <algorithm>
#include <latch>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace transept {
namespace {

// A request is made ready so long before it is due: audio takes a while to vary, and is large to keep.
constexpr Duration kLead = std::chrono::seconds(1);

struct Item {
  int64_t index = 0;
  Duration due{};  // from the start
};

class Run {
 public:
  Run(const LoadPlan& plan, const LoadClock& clock)
      : plan_(plan),
        clock_(clock),
        num_workers_(static_cast<int>(std::min<int64_t>(plan.num_workers, plan.num_requests))),
        ready_(num_workers_),
        arrivals_(plan.request_rate, plan.seed) {}

  LoadResult run(Target& target) {
    std::vector<std::unique_ptr<Target::Worker>> workers;
    workers.reserve(static_cast<size_t>(num_workers_));
    for (int i = 0; i < num_workers_; ++i) workers.push_back(target.make_worker());
    std::vector<std::thread> threads;
    threads.reserve(workers.size());
    for (const auto& worker : workers) threads.emplace_back([this, &worker] { work(*worker); });
    ready_.wait();
    begin_ = clock_.now();
    start_.count_down();
    for (std::thread& thread : threads) thread.join();
    const MutexLock lock(mutex_);
    for (const Exchange& exchange : result_.exchanges) {
      result_.duration = std::max(result_.duration, exchange.end - begin_);
    }
    return std::move(result_);
  }

 private:
  void work(Target::Worker& worker) {
    std::optional<Item> item = next();
    bool is_prepared = item.has_value() && item->due < kLead;
    if (is_prepared) worker.prepare(item->index);
    ready_.count_down();
    start_.wait();
    while (item.has_value()) {
      if (!is_prepared && wait_until(item->due - kLead)) worker.prepare(item->index);
      if (!wait_until(item->due) || is_over()) return;
      count_one_more();
      Exchange exchange = worker.send();
      exchange.due = plan_.is_open_loop ? begin_ + item->due : exchange.sent;
      record(std::move(exchange));
      item = next();
      is_prepared = false;
    }
  }

  std::optional<Item> next() {
    const MutexLock lock(mutex_);
    if (num_given_ == plan_.num_requests) return std::nullopt;
    Item item{plan_.first_index + num_given_, {}};
    if (plan_.is_open_loop) {
      item.due = arrivals_.next();
      if (plan_.duration.has_value() && item.due >= *plan_.duration) {
        num_given_ = plan_.num_requests;  // later ones are due later
        return std::nullopt;
      }
    }
    ++num_given_;
    return item;
  }

  bool is_stopped() const { return plan_.is_stopped != nullptr && plan_.is_stopped(); }

  // False: the user has had enough.
  bool wait_until(Duration due) const {
    while (!is_stopped()) {
      if (clock_.now() >= begin_ + due) return true;
      clock_.sleep_until(begin_ + due);
    }
    return false;
  }

  bool is_over() const {
    return !plan_.is_open_loop && plan_.duration.has_value() && clock_.now() - begin_ >= *plan_.duration;
  }

  void count_one_more() {
    const MutexLock lock(mutex_);
    result_.max_in_flight = std::max(result_.max_in_flight, ++num_in_flight_);
  }

  void record(Exchange exchange) {
    const MutexLock lock(mutex_);
    --num_in_flight_;
    num_failed_ += exchange.is_ok() ? 0 : 1;
    result_.exchanges.push_back(std::move(exchange));
    if (plan_.on_done != nullptr) plan_.on_done(static_cast<int64_t>(result_.exchanges.size()), num_failed_);
  }

  const LoadPlan& plan_;
  const LoadClock& clock_;
  const int num_workers_;
  std::latch ready_;
  std::latch start_{1};
  TimePoint begin_;  // written before start_ opens

  Mutex mutex_;
  Arrivals arrivals_ ABSL_GUARDED_BY(mutex_);
  int64_t num_given_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t num_failed_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  LoadResult result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void SteadyLoadClock::sleep_until(TimePoint time) const {
  std::this_thread::sleep_until(std::min(time, now() + std::chrono::milliseconds(50)));
}

LoadResult run_load(const LoadPlan& plan, Target& target, const LoadClock& clock) {
  return Run(plan, clock).run(target);
}

}  // namespace transept
