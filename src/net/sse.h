// Server-sent events (WHATWG HTML, 9.2): the writer of streams, and a reader for clients. Thread-safe functions; a
// reader belongs to one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace transept {

inline constexpr std::string_view kSseContentType = "text/event-stream; charset=utf-8";
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

// "data: ...\n\n"; a line break (CR, LF, CRLF) in `data` begins another data line. `event` (may be "") without breaks:
// they are passed over.
void append_sse_event(std::string& out, std::string_view data, std::string_view event = "");

class SseReader final {
 public:
  // Events of more than max_event_bytes end the reading: push gives false from there on.
  explicit SseReader(size_t max_event_bytes = 16 << 20) : max_event_bytes_(max_event_bytes) {}

  // Bytes as they come, cut anywhere; on_event for every event that is complete, with its data lines joined by LF.
  bool push(std::string_view bytes, const std::function<void(std::string_view event, std::string_view data)>& on_event);

 private:
  void take_line(std::string_view line, const std::function<void(std::string_view, std::string_view)>& on_event);

  size_t max_event_bytes_;
  std::string line_, event_, data_;
  bool has_data_ = false, after_cr_ = false, at_start_ = true, failed_ = false;
};

}  // namespace transept
