// A small blocking HTTP/1.1 client, for calls between processes, `bench serve` and tests. Owns one connection, which
// stays open between requests if the server keeps it. If the server closed a kept connection, the client reconnects and
// sends the request again: once, and only if no byte of the answer came. Not thread-safe. http:// only: a proxy does
// TLS.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/client_socket.h"
#include "net/http.h"

namespace transept {

struct HttpUrl {
  std::string host;
  uint16_t port = 80;
  std::string path = "/";  // with the query

  // Parses "http://host[:port][/path]", with IPv6 in brackets. Errors: kUnimplemented for https://, kInvalidArgument
  // for any other text.
  static StatusOr<HttpUrl> parse(std::string_view text);
};

class HttpClient final {
 public:
  struct Options {
    std::chrono::milliseconds connect_timeout{5000};
    std::chrono::milliseconds timeout{600000};  // of a whole exchange, connect included
    size_t max_body_bytes = size_t{1} << 30;
  };
  struct Reply {
    int status = 0;
    HttpHeaders headers;
    std::string body;  // empty if on_piece received it
  };

  HttpClient(std::string host, uint16_t port, const Options& options);
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;

  // Whether a connection is open, and the server has neither closed it nor said anything unasked.
  bool is_connected() const;

  // Sends one request and reads the whole answer, of any status. Errors: kInvalidArgument (a malformed path or header),
  // kUnavailable (cannot connect; the connection ended before the answer), kDeadlineExceeded, kResourceExhausted
  // (max_body_bytes), kDataLoss (not HTTP, an answer cut short). After an error the connection is closed.
  StatusOr<Reply> get(std::string_view path, const HttpHeaders& headers = {});
  StatusOr<Reply> post(std::string_view path, std::string_view content_type, std::string_view body,
                       const HttpHeaders& headers = {});
  // Passes the body of an answer with status 200 to `on_piece` as its bytes arrive; other bodies are in Reply::body.
  // If `on_piece` returns false, the connection is closed and the call returns kCancelled. Errors: as post.
  StatusOr<Reply> post_streamed(std::string_view path, std::string_view content_type, std::string_view body,
                                const std::function<bool(std::string_view)>& on_piece, const HttpHeaders& headers = {});

  // What becomes of an answer of any status, as it comes. The first two return whether more is wanted.
  struct Sink {
    std::function<bool(int status, const HttpHeaders& headers)> on_head;
    std::function<bool(std::string_view piece)> on_piece;
    std::function<bool()> is_wanted;  // asked ten times a second while nothing comes
    // Of a request with Upgrade, instead of those two: the server switches protocols. Gets the connection, and the
    // bytes that came behind the answer's head. Empty: an answer 101 is an error, kDataLoss.
    std::function<void(const HttpHeaders& headers, ClientSocket socket, std::string first_bytes)> on_upgrade = nullptr;
  };
  // Sends a request of any method with these headers and its Content-Length, and passes the answer on. `method` is not
  // HEAD, whose answers have no body. Errors: as post(), and kCancelled, the answer is not wanted any more.
  Status pass(std::string_view method, std::string_view path, const HttpHeaders& headers, std::string_view body,
              const Sink& sink);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace transept
