#include "encoder_cache/connector.h"

#include <algorithm>
#include <iterator>

namespace transept {

void EcInbox::set_wake(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  wake_ = wake ? std::make_shared<const std::function<void()>>(std::move(wake)) : nullptr;
}

bool EcInbox::put(EcEvent event) {
  std::shared_ptr<const std::function<void()>> wake;
  {
    const MutexLock lock(mutex_);
    const bool is_message = std::holds_alternative<EcPeerMessage>(event);
    if (is_message && num_messages_ >= max_messages_) {
      ++num_dropped_;
      return false;
    }
    num_messages_ += is_message ? 1 : 0;
    events_.push_back(std::move(event));
    if (events_.size() - begin_ > 1) return true;
    wake = wake_;
  }
  if (wake != nullptr) (*wake)();
  return true;
}

void EcInbox::take(size_t max_events, std::vector<EcEvent>& events) {
  events.clear();
  const MutexLock lock(mutex_);
  const size_t count = std::min(max_events, events_.size() - begin_);
  const auto first = events_.begin() + static_cast<std::ptrdiff_t>(begin_);
  events.assign(std::make_move_iterator(first), std::make_move_iterator(first + static_cast<std::ptrdiff_t>(count)));
  begin_ += count;
  num_messages_ -= static_cast<size_t>(
      std::ranges::count_if(events, [](const EcEvent& event) { return std::holds_alternative<EcPeerMessage>(event); }));
  // What was taken is dropped when it is most of the list, so that each event is moved twice at most.
  if (2 * begin_ >= events_.size()) {
    events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
  }
}

bool EcInbox::is_empty() const {
  const MutexLock lock(mutex_);
  return events_.size() == begin_;
}

int64_t EcInbox::num_dropped() const {
  const MutexLock lock(mutex_);
  return num_dropped_;
}

}  // namespace transept
