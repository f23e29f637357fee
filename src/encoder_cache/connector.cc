#include "encoder_cache/connector.h"

#include <algorithm>
#include <iterator>

namespace transept {

void EcInbox::set_wake(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  wake_ = wake ? std::make_shared<const std::function<void()>>(std::move(wake)) : nullptr;
}

// Whether there is a place for a further message of the peer, which is taken then.
bool EcInbox::add_message(const std::string& peer) {
  if (first_peer_.empty()) first_peer_ = peer;
  has_others_ = has_others_ || peer != first_peer_;
  if (num_messages_ >= max_messages_) return false;
  size_t& own = messages_of_[peer];
  if (has_others_ && own > 0 && own >= max_messages_ - num_messages_) return false;
  ++own;
  ++num_messages_;
  return true;
}

bool EcInbox::put(EcEvent event) {
  std::shared_ptr<const std::function<void()>> wake;
  {
    const MutexLock lock(mutex_);
    const auto* const message = std::get_if<EcPeerMessage>(&event);
    if (message != nullptr && !add_message(message->from.name)) {
      ++num_dropped_;
      return false;
    }
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
  for (const EcEvent& event : events) {
    const auto* const message = std::get_if<EcPeerMessage>(&event);
    if (message == nullptr) continue;
    --num_messages_;
    const auto own = messages_of_.find(message->from.name);
    if (--own->second == 0) messages_of_.erase(own);
  }
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
