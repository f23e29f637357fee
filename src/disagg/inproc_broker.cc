#include "disagg/inproc_broker.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace transept {
namespace {

// A subscription lasts as long as its broker object; renewed by its thread.
constexpr Duration kSubscribed = std::chrono::seconds(10);

}  // namespace

void InprocHub::forget() {
  const MutexLock lock(mutex_);
  state_ = std::make_unique<State>(options_);
}

void InprocHub::tell(bool is_away) {
  const MutexLock lock(tell_mutex_);
  for (const auto& [broker, listener] : listeners_) listener(is_away);
}

void InprocHub::go_away() {
  {
    const MutexLock lock(mutex_);
    is_away_ = true;
    changed_.notify_all();
  }
  tell(true);
}

void InprocHub::come_back_empty() {
  forget();
  {
    const MutexLock lock(mutex_);
    is_away_ = false;
    changed_.notify_all();
  }
  tell(false);
}

InprocBroker::~InprocBroker() {
  {
    const MutexLock lock(hub_->mutex_);
    is_stopped_ = true;
    hub_->changed_.notify_all();
  }
  {
    const MutexLock lock(hub_->tell_mutex_);
    std::erase_if(hub_->listeners_, [this](const auto& entry) { return entry.first == this; });
  }
  std::vector<std::thread> threads;
  {
    const MutexLock lock(threads_mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

// Runs act(state) and wakes who waits, or says that the broker is away.
template <typename Do>
Status InprocBroker::with_state(Do&& act) const {
  const MutexLock lock(hub_->mutex_);
  if (hub_->is_away_) return absl::UnavailableError("the broker is away");
  Status status = act(*hub_->state_);
  hub_->changed_.notify_all();
  return status;
}

Status InprocBroker::publish(const InstanceId& to, EcChannel channel, std::span<const std::byte> frame) {
  return with_state([&](auto& state) { return state.instances.publish(to, channel, frame, steady_now()); });
}

Status InprocBroker::subscribe(const InstanceId& self, EcChannel channel,
                               std::function<void(std::span<const std::byte> frame)> take) {
  RETURN_IF_ERROR(with_state(
      [&](auto& state) { return state.instances.keep(self, steady_now() + kSubscribed, steady_now(), true); }));
  const MutexLock lock(threads_mutex_);
  threads_.emplace_back([this, self, channel, take = std::move(take)] { deliver(self, channel, take); });
  return ok_status();
}

void InprocBroker::deliver(const InstanceId& self, EcChannel channel,
                           const std::function<void(std::span<const std::byte> frame)>& take) {
  TimePoint renew_at = TimePoint::min();
  while (true) {
    InstanceBook::Delivery delivery;
    {
      const MutexLock lock(hub_->mutex_);
      if (is_stopped_) return;
      const TimePoint time = steady_now();
      std::optional<InstanceBook::Delivery> next;
      if (!hub_->is_away_) {
        if (time >= renew_at) {
          // A hub that is full takes it at a later turn.
          static_cast<void>(hub_->state_->instances.keep(self, time + kSubscribed, time, false));
          renew_at = time + std::chrono::milliseconds(100);
        }
        next = hub_->state_->instances.next(self, channel, time);
      }
      if (!next.has_value()) {
        hub_->changed_.wait_until(hub_->mutex_, time + std::chrono::milliseconds(100));
        continue;
      }
      delivery = *std::move(next);
    }
    take(*delivery.frame);
    const MutexLock lock(hub_->mutex_);
    hub_->state_->instances.acknowledge(self, channel, delivery.id);
  }
}

Status InprocBroker::offer(const Ticket& ticket) {
  return with_state([&](auto& state) { return state.tickets.offer(ticket, steady_now()); });
}

StatusOr<std::optional<Ticket>> InprocBroker::take(const InstanceId& self, const ModelFingerprint& model,
                                                   Duration wait) {
  const TimePoint end = steady_now() + wait;
  const MutexLock lock(hub_->mutex_);
  while (true) {
    if (hub_->is_away_) return absl::UnavailableError("the broker is away");
    const TimePoint time = steady_now();
    std::optional<Ticket> ticket = hub_->state_->tickets.take(self, model, time);
    if (ticket.has_value() || time >= end) return ticket;
    hub_->changed_.wait_until(hub_->mutex_, std::min(end, hub_->state_->tickets.next_time(model)));
  }
}

Status InprocBroker::renew(const InstanceId& self, const EcKey& key) {
  return with_state([&](auto& state) { return state.tickets.renew(self, key, steady_now()); });
}

Status InprocBroker::done(const InstanceId& self, const EcKey& key) {
  return with_state([&](auto& state) { return state.tickets.done(self, key, steady_now()); });
}

Status InprocBroker::withdraw(const EcInput& input) {
  return with_state([&](auto& state) {
    state.tickets.withdraw(input);
    return ok_status();
  });
}

StatusOr<int64_t> InprocBroker::num_tickets() const {
  int64_t count = 0;
  RETURN_IF_ERROR(with_state([&](auto& state) {
    count = state.tickets.num_waiting(steady_now());
    return ok_status();
  }));
  return count;
}

Status InprocBroker::announce(const InstanceRecord& record, Duration ttl) {
  return with_state([&](auto& state) { return state.instances.announce(record, ttl, steady_now()); });
}

Status InprocBroker::leave(const InstanceId& self) {
  return with_state([&](auto& state) {
    state.instances.leave(self);
    return ok_status();
  });
}

StatusOr<std::vector<InstanceRecord>> InprocBroker::peers() const {
  std::vector<InstanceRecord> records;
  RETURN_IF_ERROR(with_state([&](auto& state) {
    records = state.instances.peers(steady_now());
    return ok_status();
  }));
  return records;
}

void InprocBroker::on_path(std::function<void(bool is_away)> tell) {
  const MutexLock lock(hub_->tell_mutex_);
  hub_->listeners_.emplace_back(this, std::move(tell));
}

}  // namespace transept
