// Parses one request from bytes that arrive in pieces: limits and framing. Never takes a byte after the request, so the
// next bytes of the connection belong to the next request. Independent of sockets. Not thread-safe: owned by one
// connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_head.h"

namespace transept {

class HttpRequestParser final {
 public:
  struct Limits {
    size_t max_request_line_bytes = 8 << 10;
    size_t max_header_bytes = 16 << 10;  // of the headers and a chunked body's trailers together
    size_t max_headers = 100;            // the same
  };
  enum class State {
    kHead,      // feed() takes more bytes
    kHeadDone,  // call read_body() next
    kBody,      // feed() takes more bytes
    kComplete,
    kFailed,  // error() says why; the connection's further bytes cannot be parsed
  };

  explicit HttpRequestParser(const Limits& limits) : limits_(limits), header_bytes_left_(limits.max_header_bytes) {}

  // Takes bytes of the request from the front of `bytes`, up to the end of the head or of the body. Returns how many:
  // all, if the state is still kHead or kBody afterwards; 0 in other states.
  size_t feed(std::string_view bytes);
  // Starts the body; a larger one is an error (413), at once if the head declares its length. REQUIRES: kHeadDone.
  void read_body(size_t max_body_bytes);

  State state() const { return state_; }
  bool has_begun() const { return has_begun_; }  // a byte of the request came; one empty line before it does not count
  const HttpError& error() const { return error_; }
  HttpHead& head() { return head_; }  // complete from kHeadDone on; after an error, the part that was read
  size_t num_body_bytes() const { return body_.size(); }
  std::string take_body() { return std::move(body_); }  // in kComplete

 private:
  enum class Step { kRequestLine, kHeaders, kSizedBody, kChunkSize, kChunkData, kChunkEnd, kTrailers };

  void take(std::string_view& bytes);
  std::optional<std::string> take_line(std::string_view& bytes, size_t max_bytes, const HttpError& too_long);
  void take_request_line(std::string_view& bytes);
  void take_header(std::string_view& bytes);
  void take_body_bytes(std::string_view& bytes);
  void take_chunk_size(std::string_view& bytes);
  void fail(HttpError error);
  void fail_if(std::optional<HttpError> error);

  Limits limits_;
  State state_ = State::kHead;
  Step step_ = Step::kRequestLine;
  HttpHead head_;
  HttpError error_;
  std::string line_, body_;
  bool has_begun_ = false, skipped_empty_line_ = false;
  size_t header_bytes_left_, num_headers_ = 0, max_body_bytes_ = 0;
  uint64_t body_bytes_left_ = 0;  // of the body, or of the chunk
};

}  // namespace transept
