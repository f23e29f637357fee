#include "net/websocket_outbox.h"

namespace transept {
namespace {

constexpr size_t kMaxWhyBytes = 123;  // a control frame has at most 125, two of which are the code

std::string shortened(std::string_view why) {
  if (why.size() <= kMaxWhyBytes) return std::string(why);
  size_t end = kMaxWhyBytes;
  while (end > 0 && (static_cast<unsigned char>(why[end]) & 0xC0) == 0x80) --end;  // within a character
  return std::string(why.substr(0, end));
}

}  // namespace

void WebSocketOutbox::send(std::string message, bool is_text) {
  const MutexLock lock(mutex_);
  if (is_gone_ || close_.has_value()) return;
  const size_t num_bytes = message.size() + kMessageOverheadBytes;
  const size_t num_waiting = waiting_bytes_ + in_flight_bytes_;
  // One large message alone is no sign of a slow client.
  if (num_waiting > 0 && num_waiting + num_bytes > max_unsent_bytes_) {
    is_gone_ = was_too_slow_ = true;
    messages_.clear();
    waiting_bytes_ = 0;
    return wake();
  }
  messages_.push_back({std::move(message), is_text});
  waiting_bytes_ += num_bytes;
  wake();
}

void WebSocketOutbox::close(uint16_t code, std::string_view why) {
  const MutexLock lock(mutex_);
  if (is_gone_ || close_.has_value()) return;
  close_ = Close{code, shortened(why)};
  wake();
}

size_t WebSocketOutbox::num_unsent_bytes() const {
  const MutexLock lock(mutex_);
  return is_gone_ ? 0 : waiting_bytes_ + in_flight_bytes_;
}

bool WebSocketOutbox::is_gone() const {
  const MutexLock lock(mutex_);
  return is_gone_;
}

std::optional<WebSocketOutbox::Message> WebSocketOutbox::take_message() {
  const MutexLock lock(mutex_);
  in_flight_bytes_ = 0;
  if (messages_.empty()) return std::nullopt;
  Message message = std::move(messages_.front());
  messages_.pop_front();
  in_flight_bytes_ = message.bytes.size() + kMessageOverheadBytes;
  waiting_bytes_ -= in_flight_bytes_;
  return message;
}

std::optional<WebSocketOutbox::Close> WebSocketOutbox::asked_close() const {
  const MutexLock lock(mutex_);
  return close_;
}

bool WebSocketOutbox::is_closing() const {
  const MutexLock lock(mutex_);
  return close_.has_value();
}

bool WebSocketOutbox::is_paused() const {
  const MutexLock lock(mutex_);
  return is_paused_;
}

bool WebSocketOutbox::is_patient() const {
  const MutexLock lock(mutex_);
  return is_patient_;
}

bool WebSocketOutbox::was_too_slow() const {
  const MutexLock lock(mutex_);
  return was_too_slow_;
}

void WebSocketOutbox::go() {
  std::deque<Message> dropped;  // is destroyed without the lock
  const MutexLock lock(mutex_);
  is_gone_ = true;
  std::swap(dropped, messages_);
}

void WebSocketOutbox::detach() {
  std::function<void()> wake;
  const MutexLock lock(mutex_);
  wake = std::exchange(wake_, nullptr);
}

void WebSocketOutbox::set_patient(bool is_patient) {
  const MutexLock lock(mutex_);
  if (std::exchange(is_patient_, is_patient) != is_patient) wake();
}

void WebSocketOutbox::set_paused(bool is_paused) {
  const MutexLock lock(mutex_);
  if (std::exchange(is_paused_, is_paused) != is_paused) wake();
}

void WebSocketOutbox::wake() {
  if (wake_) wake_();
}

}  // namespace transept
