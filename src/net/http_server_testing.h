// For tests of the server: a service that records, and a client that sends and reads bytes as they are told.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"

#include "net/http_server.h"

namespace transept {

using namespace std::chrono_literals;

inline HttpResponse text_response(int status, std::string text) {
  return {.status = status, .content_type = "text/plain", .body = std::move(text)};
}

// Thread-safe. Answers every request with its method, path, query and body, unless told otherwise.
class RecordingService final : public HttpService {
 public:
  struct Done {
    HttpRequest request;
    int status;
    uint64_t bytes_sent;
  };
  using Handler = std::function<void(HttpRequest, std::shared_ptr<Responder>)>;

  // Before the server starts.
  Handler handler = [](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    responder->respond(
        text_response(200, request.method + ' ' + request.path + '?' + request.query + ' ' + request.body));
  };
  std::function<Decision(const HttpRequest&)> decide = [](const HttpRequest&) {
    return Decision{.max_body_bytes = 1 << 20};
  };

  std::function<HttpResponse(int, const std::string&)> explain = text_response;
  // What becomes of bodies that do not come with their heads, and of bytes of bodies. Empty: they are read.
  std::function<std::optional<HttpResponse>(std::shared_ptr<IncomingBody>)> await;
  std::function<std::optional<HttpResponse>(size_t num_bytes)> take_bytes;

  Decision on_head(const HttpRequest& request) override { return decide(request); }
  std::optional<HttpResponse> on_body_awaited(const HttpRequest&, const std::shared_ptr<void>&,
                                              const std::shared_ptr<IncomingBody>& body) override {
    return await ? await(body) : std::nullopt;
  }
  std::optional<HttpResponse> on_body_bytes(const std::shared_ptr<void>&, size_t num_bytes) override {
    return take_bytes ? take_bytes(num_bytes) : std::nullopt;
  }
  void on_request(HttpRequest request, std::shared_ptr<void>, std::shared_ptr<Responder> responder) override {
    handler(std::move(request), std::move(responder));
  }
  HttpResponse on_error(int status, const std::string& reason, const std::string&) override {
    return explain(status, reason);
  }
  void on_done(const HttpRequest& request, int status, double, uint64_t bytes_sent) override {
    const MutexLock lock(mutex_);
    done_.push_back({request, status, bytes_sent});
    changed_.notify_all();
  }

  // The first `count` that are done, waiting for them.
  std::vector<Done> wait_for_done(size_t count) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    const MutexLock lock(mutex_);
    while (done_.size() < count && changed_.wait_until(mutex_, end)) {
    }
    EXPECT_GE(done_.size(), count);
    return done_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Done> done_ ABSL_GUARDED_BY(mutex_);
};

class RawClient final {
 public:
  explicit RawClient(uint16_t port, int receive_buffer_bytes = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval timeout{.tv_sec = 10, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (receive_buffer_bytes > 0) {
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  // Ends it without a farewell.
  void reset() {
    const linger none{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close();
  }
  void end_sending() { ::shutdown(socket_, SHUT_WR); }

  // False: the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Everything up to and with `end`, or what there was when the connection ended.
  std::string read_until(std::string_view end) {
    while (received_.find(end) == std::string::npos && read_more()) {
    }
    const size_t found = received_.find(end);
    return take(found == std::string::npos ? received_.size() : found + end.size());
  }
  std::string read_bytes(size_t count) {
    while (received_.size() < count && read_more()) {
    }
    return take(std::min(count, received_.size()));
  }
  // Until the server closes; ended_well: without a reset and in time.
  std::string read_all(bool* ended_well = nullptr) {
    while (read_more()) {
    }
    if (ended_well != nullptr) *ended_well = has_ended_;
    return take(received_.size());
  }

  struct Response {
    int status = 0;
    std::string head, body;
    bool has(std::string_view line) const {
      return head.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
    }
  };
  // One response with a Content-Length (or, of HEAD and errors in the head, without a body).
  Response read_response(bool is_head = false) {
    Response response;
    response.head = read_until("\r\n\r\n");
    if (response.head.size() > 12) response.status = std::atoi(response.head.c_str() + 9);
    const size_t length = response.head.find("Content-Length: ");
    if (length != std::string::npos && !is_head) {
      response.body = read_bytes(static_cast<size_t>(std::atoll(response.head.c_str() + length + 16)));
    }
    return response;
  }
  Response ask(std::string_view bytes) {
    send(bytes);
    return read_response();
  }

 private:
  std::string take(size_t count) {
    std::string taken = received_.substr(0, count);
    received_.erase(0, count);
    return taken;
  }
  bool read_more() {
    char buffer[16384];
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    has_ended_ = count == 0;
    if (count <= 0) return false;
    received_.append(buffer, static_cast<size_t>(count));
    return true;
  }

  int socket_;
  bool has_ended_ = false;
  std::string received_;
};

inline std::string get_request(std::string_view path, std::string_view headers = "") {
  return std::string("GET ").append(path).append(" HTTP/1.1\r\nHost: a\r\n").append(headers).append("\r\n");
}
inline std::string post_request(std::string_view path, std::string_view body, std::string_view headers = "") {
  return std::string("POST ")
      .append(path)
      .append(" HTTP/1.1\r\nHost: a\r\nContent-Length: ")
      .append(std::to_string(body.size()))
      .append("\r\n")
      .append(headers)
      .append("\r\n")
      .append(body);
}

// Polls, since what is waited for has no event of its own.
inline bool becomes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    usleep(5000);
  }
  return false;
}

class HttpServerTest : public ::testing::Test {
 protected:
  void start() {
    options.port = 0;
    auto started = HttpServer::start(options, service);
    ASSERT_TRUE(started.ok()) << started.status();
    server = std::move(started).value();
  }

  // Responders of requests that stay unanswered until the test answers them.
  void hold_requests() {
    service.handler = [this](const HttpRequest&, std::shared_ptr<Responder> responder) {
      const MutexLock lock(mutex_);
      held_.push_back(std::move(responder));
      changed_.notify_all();
    };
  }
  std::shared_ptr<Responder> held(size_t index = 0) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    const MutexLock lock(mutex_);
    while (held_.size() <= index && changed_.wait_until(mutex_, end)) {
    }
    EXPECT_GT(held_.size(), index);
    return held_.at(index);
  }
  void let_go_of_held() {
    const MutexLock lock(mutex_);
    held_.clear();
  }

  HttpServer::Options options;
  RecordingService service;
  std::unique_ptr<HttpServer> server;

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::shared_ptr<Responder>> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace transept
