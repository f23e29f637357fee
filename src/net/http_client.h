// A small blocking HTTP/1.1 client: what `bench serve` and the tests speak. One connection, which stays open between
// requests where the server lets it, and is opened anew where it did not (once, and only before a byte of the answer
// came). Not thread-safe. http:// alone: TLS belongs to a proxy.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http.h"

namespace transept {

struct HttpUrl {
  std::string host;
  uint16_t port = 80;
  std::string path = "/";  // with the query

  // "http://host[:port][/path]", IPv6 in brackets. Errors: anything else (says what).
  static StatusOr<HttpUrl> parse(std::string_view text);
};

class HttpClient final {
 public:
  struct Options {
    std::chrono::milliseconds connect_timeout{5000};
    std::chrono::milliseconds timeout{600000};  // of a whole exchange
    size_t max_body_bytes = size_t{1} << 30;
  };
  struct Reply {
    int status = 0;
    HttpHeaders headers;
    std::string body;  // what on_piece was not given
  };

  HttpClient(std::string host, uint16_t port, const Options& options);
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;

  // Errors: kUnavailable (cannot connect, the connection ended early), kDeadlineExceeded, kResourceExhausted
  // (max_body_bytes), kDataLoss (not HTTP, a body cut short).
  StatusOr<Reply> get(std::string_view path, const HttpHeaders& headers = {});
  StatusOr<Reply> post(std::string_view path, std::string_view content_type, std::string_view body,
                       const HttpHeaders& headers = {});
  // Hands the body's bytes over as they come, of answers with status 200 (others are in Reply::body); false from
  // `on_piece` closes the connection and ends the call with kCancelled.
  StatusOr<Reply> post_streamed(std::string_view path, std::string_view content_type, std::string_view body,
                                const std::function<bool(std::string_view)>& on_piece, const HttpHeaders& headers = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace transept
