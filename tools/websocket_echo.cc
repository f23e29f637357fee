// What tests/websocket drives: a server whose /echo answers each message with itself, in messages of up to 64 KiB. It
// serves the subprotocol "echo"; other offers are 400. Other paths are plain HTTP. Texts that are commands:
//   close CODE WHY   closes
//   push N BYTES     sends so many texts of so many bytes, at once
//   pause MS         reads nothing for so long
// Writes its port as a line, and what each WebSocket ended with as `closed CODE`; drains and ends with standard input:
//   websocket_echo [PING_MS]
// Not shipped.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "net/http_server.h"
#include "net/websocket_handshake.h"

namespace transept {
namespace {

class EchoHandler final : public WebSocketHandler {
 public:
  void on_open(std::shared_ptr<WebSocket> socket) override { socket_ = std::move(socket); }
  void on_message(std::string message, bool is_text) override {
    std::istringstream words(is_text && message.size() < 200 ? message : "");
    std::string command, why;
    words >> command;
    size_t number = 0, size = 0;
    if (command == "close" && words >> number) {
      std::getline(words >> std::ws, why);
      socket_->close(static_cast<uint16_t>(number), why);
    } else if (command == "push" && words >> number >> size) {
      for (size_t i = 0; i < number; ++i) socket_->send(std::string(size, 'x'), true);
    } else if (command == "pause" && words >> number) {
      socket_->pause_reading();
      std::thread([socket = socket_, number] {
        std::this_thread::sleep_for(std::chrono::milliseconds(number));
        socket->resume_reading();
      }).detach();
    } else {
      socket_->send(std::move(message), is_text);
    }
  }
  void on_drain() override { socket_->close(WebSocketCode::kGoingAway, "draining"); }
  void on_closed(uint16_t code) override {
    std::printf("closed %d\n", code);
    std::fflush(stdout);
  }

 private:
  std::shared_ptr<WebSocket> socket_;
};

class EchoService final : public HttpService {
 public:
  Decision on_head(const HttpRequest& request) override {
    Decision decision;
    if (request.path != "/echo") return decision;
    static constexpr std::string_view kServed[] = {"echo"};
    auto subprotocol = choose_subprotocol(request, kServed);
    if (!subprotocol.has_value()) {
      decision.refusal = HttpResponse{.status = 400, .body = "of subprotocols there is only echo"};
      return decision;
    }
    decision.upgrade = WebSocketUpgrade{.subprotocol = *std::move(subprotocol),
                                        .max_message_bytes = 64 << 10,
                                        .handler = std::make_unique<EchoHandler>()};
    return decision;
  }
  void on_request(HttpRequest, std::shared_ptr<void>, std::shared_ptr<Responder> responder) override {
    responder->respond({.body = "{}"});
  }
  HttpResponse on_error(int status, const std::string& reason, const std::string&) override {
    return {.status = status, .content_type = "text/plain", .body = reason};
  }
  void on_done(const HttpRequest&, int, double, uint64_t) override {}
};

int run(int ping_ms) {
  EchoService service;
  HttpServer::Options options;
  options.port = 0;
  options.websocket_ping_interval = std::chrono::milliseconds(ping_ms);
  const auto server = HttpServer::start(options, service);
  if (!server.ok()) {
    std::cerr << server.status() << '\n';
    return 1;
  }
  std::cout << (*server)->port() << std::endl;
  while (std::cin.get() != std::char_traits<char>::eof()) {
  }
  (*server)->drain();
  const bool is_answered = (*server)->wait_until_answered(std::chrono::seconds(10));
  (*server)->stop();
  return is_answered ? 0 : 1;
}

}  // namespace
}  // namespace transept

int main(int num_arguments, char** arguments) {
  return transept::run(num_arguments > 1 ? std::atoi(arguments[1]) : 20000);
}
