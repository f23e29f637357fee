// Server-sent events (WHATWG HTML, 9.2): a writer for streams, and a reader for clients. Functions are thread-safe; a
// reader is not.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace transept {

inline constexpr std::string_view kSseContentType = "text/event-stream; charset=utf-8";
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

// Appends "data: ...\n\n", with an "event: " line before it if `event` is not "". A line break (CR, LF, CRLF) in `data`
// begins another data line; line breaks in `event` are dropped.
void append_sse_event(std::string& out, std::string_view data, std::string_view event = "");

class SseReader final {
 public:
  // After an event of more than max_event_bytes, push returns false for good.
  explicit SseReader(size_t max_event_bytes = 16 << 20) : max_event_bytes_(max_event_bytes) {}

  // Takes bytes as they arrive, cut anywhere. Calls on_event for each complete event that has data, with its data lines
  // joined by LF. False: an event was too large.
  bool push(std::string_view bytes, const std::function<void(std::string_view event, std::string_view data)>& on_event);

 private:
  void take_line(std::string_view line, const std::function<void(std::string_view, std::string_view)>& on_event);

  size_t max_event_bytes_;
  std::string line_, event_, data_;
  bool has_data_ = false, after_cr_ = false, at_start_ = true, failed_ = false;
};

}  // namespace transept
