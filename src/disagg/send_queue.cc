#include "disagg/send_queue.h"

#include <algorithm>
#include <utility>

namespace transept {

void SendQueue::add(std::string_view to, BulkTransport::Sending sending) {
  const MutexLock lock(mutex_);
  queues_[std::string(to)].push_back({std::move(sending)});
}

void SendQueue::cancel(const EcInput& input) {
  std::vector<Entry> dropped;  // rows and callbacks go without the lock
  const MutexLock lock(mutex_);
  const bool is_sender = sender_ == std::this_thread::get_id();
  while (busy_ == input && !is_sender) left_.wait(mutex_);
  for (auto& [to, queue] : queues_) {
    for (Entry& entry : queue) {
      if (input_of(entry.sending.key) == input) dropped.push_back(std::move(entry));
    }
  }
  for (auto at = queues_.begin(); at != queues_.end();) {
    std::erase_if(at->second, [](const Entry& entry) { return entry.sending.rows == nullptr; });
    at = at->second.empty() ? queues_.erase(at) : std::next(at);
  }
  if (busy_ == input) is_cancelled_ = true;
}

std::vector<std::string> SendQueue::destinations() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [to, queue] : queues_) all.push_back(to);
  return all;
}

std::optional<SendQueue::Piece> SendQueue::begin(const std::string& to) {
  const MutexLock lock(mutex_);
  const auto queue = queues_.find(to);
  if (queue == queues_.end()) return std::nullopt;
  const Entry& entry = queue->second.front();
  const BulkTransport::Sending& sending = entry.sending;
  busy_ = input_of(sending.key);
  busy_to_ = to;
  busy_bytes_ = std::min(kBulkChunkBytes, sending.rows->size() - entry.num_sent);
  is_cancelled_ = false;
  sender_ = std::this_thread::get_id();
  Piece piece{sending.key, sending.rows, {}};
  piece.chunk = {sending.key, sending.reservation, entry.num_sent, sending.rows->size(),
                 std::span(*sending.rows).subspan(entry.num_sent, busy_bytes_)};
  return piece;
}

void SendQueue::advance() {
  std::function<void()> progress;
  std::function<void(Status)> done;
  {
    const MutexLock lock(mutex_);
    auto& queue = queues_.at(busy_to_);
    Entry& entry = queue.front();
    entry.num_sent += busy_bytes_;
    progress = entry.sending.progress;
    if (entry.num_sent == entry.sending.rows->size()) {
      done = std::move(entry.sending.done);
      queue.pop_front();
      if (queue.empty()) queues_.erase(busy_to_);
    }
  }
  if (progress) progress();
  {
    const MutexLock lock(mutex_);
    if (is_cancelled_) done = nullptr;
  }
  if (done) done(ok_status());
  const MutexLock lock(mutex_);
  leave();
}

void SendQueue::keep() {
  const MutexLock lock(mutex_);
  leave();
}

void SendQueue::fail(Status why) {
  std::optional<Entry> entry;
  {
    const MutexLock lock(mutex_);
    auto& queue = queues_.at(busy_to_);
    entry = std::move(queue.front());
    queue.pop_front();
    if (queue.empty()) queues_.erase(busy_to_);
  }
  if (entry->sending.done) entry->sending.done(std::move(why));
  const MutexLock lock(mutex_);
  leave();
}

void SendQueue::leave() {
  busy_.reset();
  sender_ = std::thread::id();
  left_.notify_all();
}

}  // namespace transept
