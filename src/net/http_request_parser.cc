#include "net/http_request_parser.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "net/http_chars.h"

namespace transept {
namespace {

constexpr size_t kMaxChunkLineBytes = 256;  // a size, and extensions that nobody uses
constexpr size_t kMaxChunkSizeDigits = 15;  // below 2^60

HttpError headers_too_large(const HttpRequestParser::Limits& limits) {
  return {431, str_cat("the headers are more than ", limits.max_headers, " or larger than ", limits.max_header_bytes,
                       " bytes")};
}

// Of a body in chunks the size is not known.
HttpError chunks_too_large(size_t max_bytes) { return {413, str_cat("the body is larger than ", max_bytes, " bytes")}; }

HttpError body_too_large(uint64_t size, size_t max_bytes) {
  return {413, str_cat("the body has ", size, " bytes; at most ", max_bytes, " are taken")};
}

}  // namespace

size_t HttpRequestParser::feed(std::string_view bytes) {
  const size_t size = bytes.size();
  while (!bytes.empty() && (state_ == State::kHead || state_ == State::kBody)) take(bytes);
  return size - bytes.size();
}

void HttpRequestParser::read_body(size_t max_body_bytes) {
  CHECK(state_ == State::kHeadDone);
  max_body_bytes_ = max_body_bytes;
  state_ = State::kBody;
  if (head_.is_chunked) {
    step_ = Step::kChunkSize;
    return;
  }
  if (head_.content_length > max_body_bytes) return fail(body_too_large(head_.content_length, max_body_bytes));
  step_ = Step::kSizedBody;
  body_bytes_left_ = head_.content_length;
  if (body_bytes_left_ == 0) state_ = State::kComplete;
}

void HttpRequestParser::take(std::string_view& bytes) {
  switch (step_) {
    case Step::kRequestLine: return take_request_line(bytes);
    case Step::kHeaders:
    case Step::kTrailers: return take_header(bytes);
    case Step::kSizedBody:
    case Step::kChunkData: return take_body_bytes(bytes);
    case Step::kChunkSize: return take_chunk_size(bytes);
    case Step::kChunkEnd:
      if (take_line(bytes, 0, {400, "a chunk is longer than its size"}).has_value()) step_ = Step::kChunkSize;
      return;
  }
}

// A line without its CRLF, once its end is there; bytes of a line that is still open are kept.
std::optional<std::string> HttpRequestParser::take_line(std::string_view& bytes, size_t max_bytes,
                                                        const HttpError& too_long) {
  const std::string_view room = bytes.substr(0, max_bytes + 2 - line_.size());
  const size_t end = room.find('\n');
  const std::string_view piece = end == std::string_view::npos ? room : room.substr(0, end + 1);
  line_.append(piece);
  bytes.remove_prefix(piece.size());
  if (end == std::string_view::npos) {
    if (line_.size() == max_bytes + 2) fail(too_long);
    return std::nullopt;
  }
  if (!line_.ends_with("\r\n")) {
    fail({400, "a line ends with LF alone"});
    return std::nullopt;
  }
  line_.resize(line_.size() - 2);
  if (line_.find('\r') != std::string::npos) {
    fail({400, "CR inside a line"});
    return std::nullopt;
  }
  return std::exchange(line_, {});
}

void HttpRequestParser::take_request_line(std::string_view& bytes) {
  if (!has_begun_ && line_.empty()) {
    const bool is_empty_line = bytes.front() == '\r' && !skipped_empty_line_;
    if (!is_empty_line && !is_token_char(bytes.front())) return fail({400, "this is not an HTTP request"});
    has_begun_ = !is_empty_line;
  }
  const auto line =
      take_line(bytes, limits_.max_request_line_bytes,
                {414, str_cat("the request line is longer than ", limits_.max_request_line_bytes, " bytes")});
  if (!has_begun_ && line_.size() > 1) return fail({400, "CR inside a line"});
  if (!line.has_value()) return;
  // RFC 9112, 2.2: one empty line before a request is passed over; old clients sent it behind a body.
  if (!has_begun_) {
    skipped_empty_line_ = true;
    return;
  }
  step_ = Step::kHeaders;
  fail_if(read_request_line(*line, head_));
}

void HttpRequestParser::take_header(std::string_view& bytes) {
  const auto line = take_line(bytes, header_bytes_left_, headers_too_large(limits_));
  if (!line.has_value()) return;
  if (line->empty()) {
    if (step_ == Step::kTrailers) {
      state_ = State::kComplete;
      return;
    }
    state_ = State::kHeadDone;
    return fail_if(finish_head(head_));
  }
  header_bytes_left_ -= std::min(header_bytes_left_, line->size() + 2);
  if (++num_headers_ > limits_.max_headers) return fail(headers_too_large(limits_));
  HttpHeaders trailers;  // are checked, and passed over
  fail_if(read_header_line(*line, step_ == Step::kTrailers ? trailers : head_.request.headers));
}

void HttpRequestParser::take_body_bytes(std::string_view& bytes) {
  const std::string_view piece = bytes.substr(0, std::min<uint64_t>(bytes.size(), body_bytes_left_));
  body_.append(piece);
  bytes.remove_prefix(piece.size());
  body_bytes_left_ -= piece.size();
  if (body_bytes_left_ > 0) return;
  if (step_ == Step::kChunkData) {
    step_ = Step::kChunkEnd;
  } else {
    state_ = State::kComplete;
  }
}

void HttpRequestParser::take_chunk_size(std::string_view& bytes) {
  const auto line = take_line(bytes, kMaxChunkLineBytes, {400, "the line of a chunk's size is too long"});
  if (!line.has_value()) return;
  const std::string_view digits = std::string_view(*line).substr(0, line->find(';'));
  const bool are_digits = std::all_of(digits.begin(), digits.end(), [](char c) { return hex_digit_value(c) >= 0; });
  if (digits.empty() || digits.size() > kMaxChunkSizeDigits || !are_digits || !is_field_value(*line)) {
    return fail({400, "a chunk's size is malformed"});
  }
  std::from_chars(digits.data(), digits.data() + digits.size(), body_bytes_left_, 16);
  if (body_bytes_left_ > max_body_bytes_ - body_.size()) return fail(chunks_too_large(max_body_bytes_));
  step_ = body_bytes_left_ == 0 ? Step::kTrailers : Step::kChunkData;
}

void HttpRequestParser::fail(HttpError error) {
  state_ = State::kFailed;
  error_ = std::move(error);
}

void HttpRequestParser::fail_if(std::optional<HttpError> error) {
  if (error.has_value()) fail(*std::move(error));
}

}  // namespace transept
