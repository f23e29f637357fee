// Any bytes as a connection's requests: the parser stays within its limits, and finds the same requests however the
// bytes are cut. The first byte says how.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_chars.h"
#include "net/http_request_parser.h"

namespace transept {
namespace {

using State = HttpRequestParser::State;

constexpr HttpRequestParser::Limits kLimits{.max_request_line_bytes = 200, .max_header_bytes = 400, .max_headers = 10};
constexpr size_t kMaxBodyBytes = 300;

void require(bool condition) {
  if (!condition) std::abort();
}

struct Outcome {
  HttpHead head;
  std::string body;
  HttpError error;
  size_t num_taken = 0;  // of a complete request
  bool is_complete = false;
};

void check(const HttpRequestParser& parser, const HttpHead& head) {
  require(parser.num_body_bytes() <= kMaxBodyBytes);
  require(head.request.headers.size() <= kLimits.max_headers + 1);  // and the target's host
  size_t num_bytes = 0;
  for (const auto& [name, value] : head.request.headers) {
    require(is_token(name) && is_field_value(value));
    num_bytes += name.size() + value.size();
  }
  require(num_bytes <= kLimits.max_header_bytes + kLimits.max_request_line_bytes);
  if (parser.state() == State::kFailed) require(parser.error().status >= 400 && !parser.error().reason.empty());
}

void check_head(const HttpHead& head) {
  require(is_token(head.request.method) && head.request.path.starts_with('/'));
  require(head.request.path.find('\0') == std::string::npos);
  require(!head.is_chunked || head.content_length == 0);
  require(head.minor_version == 0 || head.request.header("Host") != nullptr);
}

// The first request of `bytes`, which are handed over in pieces of up to `piece_bytes`.
Outcome read_one(std::string_view bytes, size_t piece_bytes) {
  HttpRequestParser parser(kLimits);
  Outcome outcome;
  while (parser.state() != State::kComplete && parser.state() != State::kFailed) {
    const std::string_view piece = bytes.substr(0, piece_bytes);
    if (parser.state() != State::kHeadDone && piece.empty()) break;
    const size_t num_taken = parser.feed(piece);
    require(num_taken <= piece.size());
    outcome.num_taken += num_taken;
    bytes.remove_prefix(num_taken);
    check(parser, parser.head());
    if (parser.state() == State::kHeadDone) {
      check_head(parser.head());
      parser.read_body(kMaxBodyBytes);
    } else {
      require(num_taken == piece.size() || parser.state() == State::kComplete || parser.state() == State::kFailed);
    }
  }
  outcome.is_complete = parser.state() == State::kComplete;
  outcome.head = parser.head();
  outcome.error = parser.error();
  outcome.body = parser.take_body();
  return outcome;
}

void run(std::string_view bytes, size_t piece_bytes) {
  while (!bytes.empty()) {
    const Outcome whole = read_one(bytes, bytes.size());
    const Outcome cut = read_one(bytes, piece_bytes);
    require(whole.is_complete == cut.is_complete && whole.body == cut.body && whole.error.reason == cut.error.reason);
    require(whole.error.status == cut.error.status && whole.head.request.headers == cut.head.request.headers);
    if (!whole.is_complete) return;
    require(whole.num_taken == cut.num_taken && whole.num_taken > 0);
    require(whole.head.request.path == cut.head.request.path && whole.head.keep_alive == cut.head.keep_alive);
    bytes.remove_prefix(whole.num_taken);
  }
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  transept::run(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1), size_t{1} + data[0] % 32);
  return 0;
}
