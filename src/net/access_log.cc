#include "net/access_log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/json.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace transept {
namespace {

constexpr size_t kMaxPath = 1000, kMaxWhat = 2000;  // characters shown

// 2026-01-31T12:00:00.123Z
std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t whole = std::chrono::system_clock::to_time_t(now);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  gmtime_r(&whole, &utc);
  char text[32];
  const size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + length, sizeof(text) - length, ".%03dZ", static_cast<int>(millis));
  return text;
}

// What a terminal or a reader of lines could take for more than text: C0, DEL, C1, and Unicode's line ends and
// directions.
bool is_control(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

// Within quotes: what is no plain character is \n, \xNN (bytes that are no UTF-8, too) or \u{NNNN}. At most
// `max_chars` characters, and dots for those behind.
std::string in_quotes(std::string_view text, size_t max_chars) {
  std::string out = "\"";
  for (size_t count = 0; !text.empty(); ++count) {
    if (count == max_chars) {
      out += "...";
      break;
    }
    const Utf8Step step = read_utf8(text);
    const bool is_valid = step.kind == Utf8Step::Kind::kValid;
    const auto size = static_cast<size_t>(is_valid ? step.num_bytes : 1);
    const uint32_t c = is_valid ? step.code_point : static_cast<unsigned char>(text[0]);
    char escape[16];
    if (is_valid && (c == '"' || c == '\\')) {
      out += str_cat('\\', static_cast<char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (is_valid && !is_control(c)) {
      out += text.substr(0, size);
    } else {
      std::snprintf(escape, sizeof(escape), !is_valid || c < 0x80 ? "\\x%02x" : "\\u{%x}", c);
      out += escape;
    }
    text.remove_prefix(size);
  }
  return out + '"';
}

// A line of JSON whose strings hold no control characters: those that Json leaves as they are become \uNNNN.
std::string escaped_json(const Json& value) {
  const std::string text = value.dump();
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Step step = read_utf8(rest);
    if (step.kind == Utf8Step::Kind::kValid && is_control(step.code_point)) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", step.code_point);
      out += escape;
    } else {
      out += rest.substr(0, static_cast<size_t>(step.num_bytes));
    }
    rest.remove_prefix(static_cast<size_t>(step.num_bytes));
  }
  return out;
}

std::string first_chars(std::string_view text, size_t max_chars) {
  size_t bytes = 0;
  for (size_t count = 0; bytes < text.size(); ++count) {
    if (count == max_chars) return str_cat(text.substr(0, bytes), "...");
    bytes += static_cast<size_t>(read_utf8(text.substr(bytes)).num_bytes);
  }
  return std::string(text);
}

bool is_hex_id(std::string_view text) {  // lower case alone, and not all zeros
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return std::ranges::all_of(text, is_hex) && text.find_first_not_of('0') != std::string_view::npos;
}

// The trace id of a traceparent (W3C Trace Context, 3.2), or "". Of versions above 00 what 00 has is read, as it says.
std::string_view trace_id(std::string_view header) {
  constexpr size_t kVersion = 0, kTrace = 3, kParent = 36, kFlags = 53, kSize = 55;
  if (header.size() < kSize || header[kTrace - 1] != '-' || header[kParent - 1] != '-' || header[kFlags - 1] != '-') {
    return "";
  }
  const std::string_view version = header.substr(kVersion, 2), flags = header.substr(kFlags, 2);
  if (version == "00" ? header.size() != kSize : header.size() > kSize && header[kSize] != '-') return "";
  const auto is_hex_pair = [](std::string_view pair) { return pair == "00" || is_hex_id(pair); };
  if (!is_hex_pair(version) || version == "ff" || !is_hex_pair(flags)) return "";
  const std::string_view id = header.substr(kTrace, 32);
  return is_hex_id(id) && is_hex_id(header.substr(kParent, 16)) ? id : "";
}

std::string_view trace_id_of(const HttpRequest& request) {
  const std::string* header = request.header("traceparent");
  return header == nullptr ? std::string_view() : trace_id(*header);
}

std::string fixed(double value, int decimals) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed, decimals);
  return error == std::errc() ? std::string(text, end) : "0";
}

// One write(2) a line, so that lines of several threads do not run into each other.
void write(std::string line) {
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody to tell
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

// A line about one request, that names it by its id.
std::string note(bool as_json, std::string_view level, std::string_view event, std::string_view key,
                 std::string_view request_id, std::string_view what) {
  if (!as_json) {
    return str_cat(timestamp(), " ", level, " ", event, " ", in_quotes(what, kMaxWhat),
                   " id=", in_quotes(request_id, kMaxPath));
  }
  Json line = Json::object();
  line.set("time", timestamp());
  line.set("level", level);
  line.set("event", event);
  line.set("request_id", request_id);
  line.set(key, first_chars(what, kMaxWhat));
  return escaped_json(line);
}

}  // namespace

std::string_view traceparent_of(const HttpRequest& request) {
  const std::string* header = request.header("traceparent");
  return header == nullptr || trace_id(*header).empty() ? std::string_view() : std::string_view(*header);
}

void AccessLog::log_encode(const EncodeLine& encode) const {
  if (!options_.is_on) return;
  const std::string_view trace = trace_id(encode.traceparent);
  if (!options_.as_json) {
    write(str_cat(timestamp(), " info encode ", in_quotes(encode.transfer, kMaxPath), " ", encode.input_id, " ",
                  encode.outcome, " ", fixed(encode.seconds, 3), "s ", encode.num_positions, " positions for ",
                  in_quotes(encode.consumer, kMaxPath), " id=", in_quotes(encode.request_id, kMaxPath),
                  trace.empty() ? "" : " trace=", trace));
    return;
  }
  Json line = Json::object();
  line.set("time", timestamp());
  line.set("level", "info");
  line.set("event", "encode");
  line.set("transfer", encode.transfer);
  line.set("input_id", static_cast<int64_t>(encode.input_id));
  line.set("outcome", encode.outcome);
  line.set("seconds", encode.seconds);
  line.set("positions", encode.num_positions);
  line.set("consumer", encode.consumer);
  line.set("request_id", encode.request_id);
  if (!trace.empty()) line.set("trace_id", trace);
  write(escaped_json(line));
}

void AccessLog::log_done(const HttpRequest& request, int status, double seconds, uint64_t bytes_sent) const {
  if (!options_.is_on) return;
  const std::string_view trace = trace_id_of(request);
  if (!options_.as_json) {
    write(str_cat(timestamp(), " info ", in_quotes(request.method, kMaxPath), " ", in_quotes(request.path, kMaxPath),
                  " ", status, " ", fixed(seconds, 3), "s ", bytes_sent, "B ", request.peer,
                  " id=", in_quotes(request.request_id, kMaxPath), trace.empty() ? "" : " trace=", trace));
    return;
  }
  Json line = Json::object();
  line.set("time", timestamp());
  line.set("level", "info");
  line.set("event", "request");
  line.set("method", first_chars(request.method, kMaxPath));
  line.set("path", first_chars(request.path, kMaxPath));
  line.set("status", status);
  line.set("seconds", seconds);
  line.set("bytes", bytes_sent);
  line.set("peer", request.peer);
  line.set("request_id", request.request_id);
  if (!trace.empty()) line.set("trace_id", trace);
  write(escaped_json(line));
}

void AccessLog::log_internal(std::string_view request_id, std::string_view what) const {
  write(note(options_.as_json, "error", "internal", "message", request_id, what));
}

void AccessLog::log_prompt(std::string_view request_id, std::string_view what) const {
  if (options_.with_prompts) write(note(options_.as_json, "info", "prompt", "prompt", request_id, what));
}

void write_json_notice(LogLevel level, std::string_view message) {
  static constexpr std::string_view kNames[] = {"error", "warning", "info", "debug"};
  Json line = Json::object();
  line.set("time", timestamp());
  line.set("level", kNames[static_cast<size_t>(level)]);
  line.set("event", "notice");
  line.set("message", first_chars(message, kMaxWhat));
  write(escaped_json(line));
}

}  // namespace transept
