// Bytes as they come, cut anywhere, to one request: limits and framing. Never takes a byte that is not this request's,
// so that what follows it on the connection is the next one's. Belongs to one thread; knows no socket.
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
    size_t max_header_bytes = 16 << 10;  // of the headers, and of a chunked body's trailers
    size_t max_headers = 100;
  };
  enum class State {
    kHead,      // more bytes are wanted
    kHeadDone,  // read_body() says how to go on
    kBody,      // more bytes are wanted
    kComplete,
    kFailed,  // error() says why; no further byte of the connection means anything
  };

  explicit HttpRequestParser(const Limits& limits) : limits_(limits), header_bytes_left_(limits.max_header_bytes) {}

  // Takes what belongs to the request from the front of `bytes`, up to the end of the head or of the body; gives how
  // much that was. All of it, in the states that want more.
  size_t feed(std::string_view bytes);
  // In kHeadDone: the body may be that large; more is an error (413), of a declared length at once.
  void read_body(size_t max_body_bytes);

  State state() const { return state_; }
  bool has_begun() const { return has_begun_; }  // a byte came that was not an empty line before the request
  const HttpError& error() const { return error_; }
  HttpHead& head() { return head_; }  // whole from kHeadDone on; after an error, what had been read
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
