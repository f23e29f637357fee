// A route that is a WebSocket: who may come in is decided before the handshake as for any request, and log, metrics and
// states of the server know it. The route is the test's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "net/websocket_handshake.h"
#include "net/websocket_testing.h"
#include "server/api_service.h"
#include "server/prometheus_testing.h"
#include "server/routes.h"
#include "server/server_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::PrometheusText;
using testing::read_frame;
using testing::text_frame;

class Echo final : public WebSocketHandler {
 public:
  void on_open(std::shared_ptr<WebSocket> socket) override { socket_ = std::move(socket); }
  void on_message(std::string message, bool is_text) override { socket_->send(std::move(message), is_text); }
  void on_drain() override { socket_->close(WebSocketCode::kGoingAway, "the server is shutting down"); }
  void on_closed(uint16_t) override {}

 private:
  std::shared_ptr<WebSocket> socket_;
};

StatusOr<WebSocketUpgrade> upgrade_to_echo(const ServerContext& context, const HttpRequest& request) {
  static constexpr std::string_view kServed[] = {"echo"};
  if (request.query == "full") return absl::UnavailableError("too many sessions");
  EXPECT_EQ(context.options.version, "0.0.0");
  auto subprotocol = choose_subprotocol(request, kServed);
  if (!subprotocol.has_value()) return absl::InvalidArgumentError("of subprotocols there is only echo");
  return WebSocketUpgrade{.subprotocol = *std::move(subprotocol), .handler = std::make_unique<Echo>()};
}

constexpr Route kEchoRoutes[] = {
    {.method = "GET", .pattern = "/v1/echo", .kind = RouteKind::kSocket, .upgrade = upgrade_to_echo}};

class WebSocketRouteTest : public ::testing::Test {
 protected:
  void start(std::vector<std::string> keys = {}) {
    house.options().api_keys = std::move(keys);
    HttpServer::Options options;
    options.port = 0;
    auto started = HttpServer::start(options, service);
    ASSERT_TRUE(started.ok()) << started.status();
    server = std::move(started).value();
  }
  static std::string request(std::string_view more = "", std::string_view method = "GET", std::string_view query = "",
                             std::string_view host = "localhost") {
    std::string bytes(method);
    bytes.append(" /v1/echo").append(query).append(" HTTP/1.1\r\nHost: ").append(host).append("\r\n");
    return bytes.append(testing::kHandshakeHeaders).append(more).append("\r\n");
  }
  void expect_refused(const std::string& bytes, int status, std::string_view code) {
    RawClient client(server->port());
    const auto response = client.ask(bytes);
    EXPECT_EQ(response.status, status) << bytes;
    EXPECT_THAT(response.body, HasSubstr(code));
  }
  void expect_echo(const std::string& bytes) {
    RawClient client(server->port());
    client.send(bytes + text_frame("hello"));
    EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 ")) << bytes;
    const auto frame = read_frame(client);
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(frame->payload, "hello");
  }

  std::atomic<ServerState> state{ServerState::kReady};
  testing::ServerHouse house;
  AccessLog log{{}};
  ApiService service{house.options(), state, house.metrics(), log, kEchoRoutes};
  std::unique_ptr<HttpServer> server;
};

TEST_F(WebSocketRouteTest, WhoMayComeInIsDecidedBeforeTheHandshake) {
  start({"secret"});
  const std::string key = "Authorization: Bearer secret\r\n";
  expect_refused(request(key), 503, "loading");
  service.set_context(house.context());
  expect_refused(request(), 401, "invalid_api_key");
  expect_refused(request(key + "Origin: http://elsewhere\r\n"), 403, "origin_not_allowed");
  expect_refused(request(key, "GET", "", "elsewhere"), 403, "host_not_allowed");
  expect_refused(request(key, "POST"), 405, "method_not_allowed");
  RawClient asks_for_head(server->port());
  asks_for_head.send(request(key, "HEAD"));
  EXPECT_TRUE(asks_for_head.read_until("\r\n\r\n").starts_with("HTTP/1.1 405 "));
  expect_refused(request(key, "GET", "?full"), 503, "too many sessions");
  expect_refused(request(key + "Sec-WebSocket-Protocol: other\r\n"), 400, "only echo");
  expect_refused(request(key + "Sec-WebSocket-Protocol: echo,\r\n"), 400, "no list");
  expect_refused(request(key + "Upgrade: h2c\r\n"), 400, "more than one protocol");
  expect_refused("GET /v1/echo HTTP/1.1\r\nHost: localhost\r\n" + key + "\r\n", 426, "upgrade_required");
  expect_echo(request(key));
  expect_echo(request(key + "Origin: http://localhost\r\nSec-WebSocket-Protocol: x, echo\r\n"));
  state = ServerState::kDraining;
  expect_refused(request(key), 503, "draining");
}

TEST_F(WebSocketRouteTest, LogAndMetricsKnowIt) {
  start();
  service.set_context(house.context());
  ::testing::internal::CaptureStderr();
  expect_echo(request("X-Request-Id: mine\r\n"));
  EXPECT_TRUE(becomes_true([&] { return server->num_connections() == 0; }));
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("\"GET\" \"/v1/echo\" 101 "));
  EXPECT_THAT(lines, HasSubstr("id=\"mine\""));
  const auto metrics = PrometheusText::parse(house.metrics().text({}, {}));
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->value("transept:http_requests_total",
                           {{"handler", "/v1/echo"}, {"method", "GET"}, {"model_name", "g2p"}, {"status", "101"}}),
            1);
}

TEST_F(WebSocketRouteTest, OpenOnesAreToldThatTheServerGoes) {
  start();
  service.set_context(house.context());
  RawClient client(server->port());
  client.send(request() + text_frame("hello"));
  client.read_until("\r\n\r\n");
  EXPECT_EQ(read_frame(client)->payload, "hello");
  state = ServerState::kDraining;
  server->drain();
  EXPECT_EQ(read_frame(client)->code(), 1001);
  client.send(testing::close_frame(1001));
  EXPECT_TRUE(server->wait_until_answered(10s));
}

}  // namespace
}  // namespace transept
