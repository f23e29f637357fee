// What the writer writes, the reader gives back, whatever the data; and the reader takes any bytes, cut anywhere, the
// same way. The first byte says how they are cut; data and event names are the input's lines, split at bytes 0x1E and
// 0x1F.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "net/sse.h"

namespace transept {
namespace {

constexpr size_t kMaxEventBytes = 200;

using Events = std::vector<std::pair<std::string, std::string>>;

void require(bool condition) {
  if (!condition) std::abort();
}

Events read_all(std::string_view text, size_t piece_bytes, size_t max_event_bytes) {
  SseReader reader(max_event_bytes);
  Events events;
  for (size_t i = 0; i < text.size(); i += piece_bytes) {
    const bool goes_on = reader.push(text.substr(i, piece_bytes), [&](std::string_view event, std::string_view data) {
      require(event.size() + data.size() <= max_event_bytes);
      events.emplace_back(event, data);
    });
    if (!goes_on) break;
  }
  return events;
}

// Every line break as LF, as a reader sees it.
std::string with_plain_breaks(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && text.substr(i + 1, 1) == "\n") continue;
    out.push_back(text[i] == '\r' ? '\n' : text[i]);
  }
  return out;
}

void check_round_trip(std::string_view input, size_t piece_bytes) {
  std::string text;
  Events expected;
  for (const std::string_view record : split(input, '\x1E')) {
    const auto fields = split(record, '\x1F');
    const std::string_view name = fields.size() > 1 ? fields[1] : "";
    append_sse_event(text, fields[0], name);
    std::string plain_name(name);
    std::erase_if(plain_name, [](char c) { return c == '\r' || c == '\n'; });
    expected.emplace_back(plain_name, with_plain_breaks(fields[0]));
  }
  require(read_all(text, piece_bytes, size_t{1} << 20) == expected);
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  if (size < 1) return 0;
  const size_t piece_bytes = size_t{1} + data[0] % 32;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  check_round_trip(bytes, piece_bytes);
  require(read_all(bytes, piece_bytes, kMaxEventBytes) ==
          read_all(bytes, std::max<size_t>(1, bytes.size()), kMaxEventBytes));
  return 0;
}
