#include "net/sse.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace transept {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kBreaks = "\r\n";

}  // namespace

void append_sse_event(std::string& out, std::string_view data, std::string_view event) {
  if (event.find_first_not_of(kBreaks) != std::string_view::npos) {
    out.append("event: ");
    std::copy_if(event.begin(), event.end(), std::back_inserter(out), [](char c) { return c != '\r' && c != '\n'; });
    out.push_back('\n');
  }
  while (true) {
    const size_t end = std::min(data.size(), data.find_first_of(kBreaks));
    out.append("data: ").append(data.substr(0, end)).push_back('\n');
    if (end == data.size()) break;
    data.remove_prefix(data.substr(end).starts_with("\r\n") ? end + 2 : end + 1);
  }
  out.push_back('\n');
}

bool SseReader::push(std::string_view bytes,
                     const std::function<void(std::string_view event, std::string_view data)>& on_event) {
  while (!bytes.empty() && !failed_) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = bytes.find_first_of(kBreaks);
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() + event_.size() + data_.size() > max_event_bytes_) {
      failed_ = true;
      break;
    }
    line_.append(piece);
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    take_line(line, on_event);
  }
  return !failed_;
}

void SseReader::take_line(std::string_view line,
                          const std::function<void(std::string_view, std::string_view)>& on_event) {
  if (std::exchange(at_start_, false) && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.empty()) {
    const std::string event = std::exchange(event_, {});
    const std::string data = std::exchange(data_, {});
    if (std::exchange(has_data_, false)) on_event(event, data);
    return;
  }
  const size_t colon = std::min(line.size(), line.find(':'));
  const std::string_view field = line.substr(0, colon);  // "" in comments
  std::string_view value = line.substr(std::min(line.size(), colon + 1));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") event_ = std::string(value);
  if (field != "data") return;
  if (std::exchange(has_data_, true)) data_.push_back('\n');
  data_.append(value);
}

}  // namespace transept
