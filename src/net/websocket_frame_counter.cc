#include "net/websocket_frame_counter.h"

#include <algorithm>

namespace transept {
namespace {

constexpr uint8_t kFinal = 0x80, kControl = 0x08, kMask = 0x80, kLength = 0x7F;

}  // namespace

void WebSocketFrameCounter::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!is_in_payload_) {
      header_[num_header_bytes_++] = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      if (num_header_bytes_ == header_bytes()) begin_payload();
    } else {
      const uint64_t count = std::min<uint64_t>(bytes.size(), payload_bytes_left_);
      bytes.remove_prefix(static_cast<size_t>(count));
      payload_bytes_left_ -= count;
      if (!is_control_) num_payload_bytes_ += count;
      if (payload_bytes_left_ == 0) end_frame();
    }
  }
}

size_t WebSocketFrameCounter::header_bytes() const {
  if (num_header_bytes_ < 2) return 2;
  const int length = header_[1] & kLength;
  const size_t length_bytes = length == 127 ? 8 : length == 126 ? 2 : 0;
  return 2 + length_bytes + ((header_[1] & kMask) != 0 ? 4 : 0);
}

void WebSocketFrameCounter::begin_payload() {
  const int length = header_[1] & kLength;
  payload_bytes_left_ = static_cast<uint64_t>(length);
  if (length >= 126) {
    payload_bytes_left_ = 0;
    const size_t end = length == 127 ? 10 : 4;
    for (size_t i = 2; i < end; ++i) payload_bytes_left_ = payload_bytes_left_ << 8 | header_[i];
  }
  num_header_bytes_ = 0;
  is_final_ = (header_[0] & kFinal) != 0;
  is_control_ = (header_[0] & kControl) != 0;
  is_in_payload_ = true;
  if (!is_control_) most_frames_ = std::max(most_frames_, ++num_frames_);
  if (payload_bytes_left_ == 0) end_frame();
}

void WebSocketFrameCounter::end_frame() {
  is_in_payload_ = false;
  if (is_control_ || !is_final_) return;
  ++num_messages_;
  num_frames_ = num_payload_bytes_ = 0;
}

}  // namespace transept
