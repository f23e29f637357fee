// Who may come in: keys, hosts, origins, methods, states of the server, a full queue; and what a client that goes
// leaves behind.
#include "server/api_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "net/http_server_testing.h"
#include "server/incoming_body_testing.h"
#include "server/prometheus_testing.h"
#include "server/served_model_testing.h"
#include "server/server_testing.h"

namespace transept {
namespace {

using testing::at;
using testing::default_server_options;
using ::testing::HasSubstr;
using testing::ServedModel;

constexpr std::string_view kGetLive = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kHello = R"({"prompt": "hello"})";

std::string header(const HttpClient::Reply& reply, std::string_view name) {
  const std::string* value = find_header(reply.headers, name);
  return value == nullptr ? "" : *value;
}

// Until `is_so`, for at most 10 s.
bool wait_until(const std::function<bool()>& is_so) {
  for (int i = 0; i < 2000 && !is_so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return is_so();
}

TEST(ApiService, SaysThatItLoadsUntilItServes) {
  ServedModel served;
  EXPECT_EQ(served.get("/health/live").status, 200);
  EXPECT_EQ(served.get("/health/ready").status, 503);
  EXPECT_EQ(served.get("/").status, 200);
  const HttpClient::Reply reply = served.post("/v1/completions", kHello);
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(header(reply, "Retry-After"), "5");
  EXPECT_EQ(at(ServedModel::json(reply), "error", "code").as_string(), "loading");
  served.load();
  EXPECT_EQ(served.get("/health/ready").status, 200);
  EXPECT_EQ(served.post("/v1/completions", kHello).status, 200);
}

TEST(ApiService, APortThatIsTakenIsAnErrorAndNoMore) {
  ServedModel served;
  ServerOptions options = default_server_options();
  options.http.port = served.server().http().port();
  const SteadyClock clock;
  const auto second = Server::start(options, {.is_on = false}, clock);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
}

TEST(ApiService, KeysGuardAllButHealthAndThePage) {
  ServerOptions options = default_server_options();
  options.api_keys = {"first-key", "second-key"};
  ServedModel served(options);
  served.load();
  for (const char* path : {"/", "/health", "/health/live", "/health/ready", "/metrics", "/debug/state"}) {
    EXPECT_EQ(served.get(path).status, 200) << path;  // the last two because this is loopback
  }
  for (const char* path : {"/v1/models", "/version", "/openapi.json", "/nothing"}) {
    EXPECT_EQ(served.get(path).status, 401) << path;
  }
  for (const char* key : {"Bearer first-key", "bearer second-key", "Bearer  first-key "}) {
    EXPECT_EQ(served.get("/v1/models", {{"Authorization", key}}).status, 200) << key;
  }
  for (const char* key :
       {"Bearer first-keyx", "Bearer first-ke", "Bearer", "Bearer ", "Basic first-key", "first-key", ""}) {
    const HttpClient::Reply reply = served.post("/v1/completions", kHello, {{"Authorization", key}});
    EXPECT_EQ(reply.status, 401) << key;
    EXPECT_EQ(at(ServedModel::json(reply), "error", "code").as_string(), "invalid_api_key");
  }
}

TEST(ApiService, MetricsAndStateAreOpenToThisMachineAlone) {
  ServerOptions options = default_server_options();
  options.api_keys = {"key"};
  std::atomic<ServerState> state{ServerState::kLoading};
  ServerMetrics metrics("model");
  const AccessLog log({.is_on = false});
  ApiService service(options, state, metrics, log);
  const auto status_for = [&](const char* path, bool peer_is_loopback, HttpHeaders headers) {
    headers.emplace_back("Host", "localhost");
    const HttpService::Decision decision = service.on_head(
        {.method = "GET", .path = path, .headers = std::move(headers), .peer_is_loopback = peer_is_loopback});
    return decision.refusal.has_value() ? decision.refusal->status : 200;
  };
  for (const char* path : {"/metrics", "/debug/state"}) {
    EXPECT_EQ(status_for(path, true, {}), 200) << path;
    EXPECT_EQ(status_for(path, false, {}), 401) << path;
    EXPECT_EQ(status_for(path, false, {{"Authorization", "Bearer other"}}), 401) << path;
    EXPECT_EQ(status_for(path, false, {{"X-Forwarded-For", "127.0.0.1"}}), 401) << path;
    EXPECT_EQ(status_for(path, false, {{"Authorization", "Bearer key"}}), 200) << path;
  }
  EXPECT_EQ(status_for("/health/live", false, {}), 200);
}

TEST(ApiService, OnLoopbackOnlyItsOwnNamesAreHosts) {
  ServerOptions options = default_server_options();
  options.allowed_hosts = {"speech.example"};
  ServedModel served(options);
  served.load();
  for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000", "speech.example",
                           "Speech.Example:443", "localhost.", "speech.example.:443"}) {
    EXPECT_EQ(served.get("/v1/models", {{"Host", host}}).status, 200) << host;
  }
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", "10.0.0.1"}) {
    EXPECT_EQ(served.get("/v1/models", {{"Host", host}}).status, 403) << host;
  }
}

TEST(ApiService, TheAddressThatIsListenedOnIsAHost) {
  ServerOptions options = default_server_options();
  options.http.host = "127.0.0.2";
  options.http.port = 0;
  const SteadyClock clock;
  const auto server = Server::start(options, {.is_on = false}, clock);
  ASSERT_TRUE(server.ok()) << server.status();
  HttpClient client("127.0.0.2", (*server)->http().port(), {});
  EXPECT_EQ(client.get("/health/live")->status, 200);
  EXPECT_EQ(client.get("/health/live", {{"Host", "127.0.0.3"}})->status, 403);
}

TEST(ApiService, OtherSitesPagesAreOutUnlessTheyAreAskedIn) {
  ServerOptions options = default_server_options();
  options.cors_origins = {"https://good.example"};
  ServedModel served(options);
  served.load();
  const HttpHeaders good = {{"Origin", "https://good.example"}}, evil = {{"Origin", "https://evil.example"}};
  EXPECT_EQ(served.post("/v1/completions", kHello, evil).status, 403);
  // A page's own origin is the whole host, behind a scheme.
  for (const char* own : {"http://localhost", "https://localhost"}) {
    EXPECT_EQ(served.get("/v1/models", {{"Host", "localhost"}, {"Origin", own}}).status, 200) << own;
  }
  for (const char* other : {"http://evil-localhost", "https://evil.localhost", "localhost", "http://localhost.evil",
                            "http://localhost:1", "ftp://localhost", "null", ""}) {
    EXPECT_EQ(served.get("/v1/models", {{"Host", "localhost"}, {"Origin", other}}).status, 403) << other;
  }
  const HttpClient::Reply reply = served.post("/v1/completions", kHello, good);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(header(reply, "Access-Control-Allow-Origin"), "https://good.example");
  const HttpClient::Reply wrong = served.post("/v1/completions", "{}", good);
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(header(wrong, "Access-Control-Allow-Origin"), "https://good.example");  // so that pages see errors
}

TEST(ApiService, PathsAndMethods) {
  ServedModel served;
  served.load();
  EXPECT_EQ(served.get("/nothing").status, 404);
  EXPECT_EQ(served.get("/v1").status, 404);
  const HttpClient::Reply reply = served.get("/v1/completions");
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(header(reply, "Allow"), "POST");
  EXPECT_EQ(served.post("/v1/models", "{}").status, 405);
  EXPECT_EQ(served.post("/", "{}").status, 405);
  EXPECT_THAT(header(served.get("/"), "Content-Security-Policy"), HasSubstr("default-src 'none'"));
  const std::string etag = header(served.get("/"), "ETag");
  EXPECT_EQ(served.get("/", {{"If-None-Match", etag}}).status, 304);
  EXPECT_EQ(served.get("/v1/models/g2p").status, 200);
  EXPECT_EQ(served.get("/v1/models/other").status, 404);
}

TEST(ApiService, BodiesMustBeJsonOfAFewLevels) {
  ServedModel served;
  served.load();
  const auto post = [&](std::string_view type, std::string_view body) {
    return served.client().post("/v1/completions", type, body)->status;
  };
  EXPECT_EQ(post("application/json; charset=utf-8", kHello), 200);
  EXPECT_EQ(post("text/plain", kHello), 400);
  EXPECT_EQ(post("application/x-www-form-urlencoded", kHello), 400);
  EXPECT_EQ(post("application/json", std::string(100, '[')), 400);
  const std::string large = "{\"prompt\": \"" + std::string(9 << 20, 'x') + "\"}";
  const auto refused = served.client().post("/v1/completions", "application/json", large);
  EXPECT_EQ(refused->status, 413);
  EXPECT_THAT(refused->body,
              HasSubstr(str_cat("the body has ", large.size(), " bytes; at most ", 8 << 20, " are taken")));
  EXPECT_THAT(served.post("/v1/completions", "{").body, HasSubstr(R"("message": "the body: not valid JSON)"));
}

// Those that bring their bytes stay, and one that brings none makes room.
TEST(ApiService, TheBytesOfABodyCountForItsPlace) {
  testing::ServerHouse house;
  std::atomic<ServerState> state{ServerState::kReady};
  const AccessLog log({.is_on = false});
  ApiService service(house.options(), state, house.metrics(), log);
  service.set_context(house.context());
  struct Client {
    std::shared_ptr<testing::FakeBody> body = std::make_shared<testing::FakeBody>();
    std::shared_ptr<void> ticket;
  };
  const HttpRequest request{
      .method = "POST",
      .path = "/v1/completions",
      .headers = {{"Host", "localhost"}, {"Content-Type", "application/json"}, {"Content-Length", "1000000"}},
      .peer_is_loopback = true,
      .peer = "a"};
  const auto enter = [&] {
    Client client;
    const HttpService::Decision decision = service.on_head(request);
    EXPECT_FALSE(decision.refusal.has_value()) << decision.refusal->body;
    client.ticket = decision.ticket;
    EXPECT_FALSE(service.on_body_awaited(request, client.ticket, client.body).has_value());
    return client;
  };
  std::vector<Client> clients;
  for (int i = 0; i < IncomingRequests::Options().max_unhurried_per_peer; ++i) clients.push_back(enter());
  std::this_thread::sleep_for(2 * IncomingRequests::kGrace);
  for (size_t i = 0; i < clients.size(); ++i) {
    if (i == 7) continue;
    EXPECT_FALSE(service.on_body_bytes(clients[i].ticket, 900'000).has_value());
  }
  const Client last = enter();
  for (size_t i = 0; i < clients.size(); ++i) EXPECT_EQ(clients[i].body->refusal.has_value(), i == 7) << i;
}

// Whatever --max-field-size says: each part of a form is then refused, or not, by its own name.
TEST(ApiService, AFormHasRoomForAFieldBesideItsFile) {
  constexpr size_t kMiB = size_t{1} << 20, kMost = std::numeric_limits<size_t>::max();
  const auto room = [](size_t max_upload_bytes, size_t max_field_bytes) {
    testing::ServerHouse house;
    house.options().max_upload_bytes = max_upload_bytes;
    house.options().max_field_bytes = max_field_bytes;
    std::atomic<ServerState> state{ServerState::kReady};
    const AccessLog log({.is_on = false});
    ApiService service(house.options(), state, house.metrics(), log);
    service.set_context(house.context());
    HttpRequest request{.method = "POST", .path = "/v1/audio/transcriptions", .peer_is_loopback = true, .peer = "a"};
    request.headers = {{"Host", "localhost"}, {"Content-Length", "1000"}};
    const HttpService::Decision decision = service.on_head(request);
    EXPECT_FALSE(decision.refusal.has_value()) << decision.refusal->body;
    return decision.max_body_bytes - max_upload_bytes;
  };
  EXPECT_GT(room(25 * kMiB, 8 * kMiB), 8 * kMiB);
  EXPECT_LT(room(25 * kMiB, 8 * kMiB), 9 * kMiB);
  EXPECT_GT(room(25 * kMiB, kMiB), kMiB);
  EXPECT_EQ(room(25 * kMiB, 100), kMiB) << "many small ones";
  EXPECT_EQ(room(kMiB, kMost), kMost - kMiB);
  EXPECT_EQ(room(kMost, kMiB), 0u);
}

TEST(ApiService, BodiesComeAsTheyAre) {
  ServedModel served;
  served.load();
  for (const char* coding : {"identity", "Identity", ""}) {
    EXPECT_EQ(served.post("/v1/completions", kHello, {{"Content-Encoding", coding}}).status, 200) << coding;
  }
  for (const char* coding : {"gzip", "br", "identity, gzip", "x"}) {
    const HttpClient::Reply reply = served.post("/v1/completions", kHello, {{"Content-Encoding", coding}});
    EXPECT_EQ(reply.status, 415) << coding;
    EXPECT_EQ(at(ServedModel::json(reply), "error", "code").as_string(), "unsupported_content_encoding");
  }
  EXPECT_EQ(served.get("/v1/models", {{"Content-Encoding", "gzip"}}).status, 200);  // has no body
}

TEST(ApiService, ABatchLargerThanTheQueueIsWrong) {
  ServerOptions options = default_server_options();
  options.queue.max_requests = 2;
  ServedModel served(options);
  served.load();
  EXPECT_EQ(served.post("/v1/completions", R"({"prompt": ["a", "b"]})").status, 200);
  EXPECT_EQ(served.post("/v1/completions", R"({"prompt": ["a", "b", "c"]})").status, 400);
}

// What holds of a text and of a chat.
struct Spelling {
  const char* name;
  std::string path, prompt;

  std::string body(std::string_view fields = "") const { return str_cat("{", prompt, fields, "}"); }
};

class SpelledRequests : public ::testing::TestWithParam<Spelling> {};
INSTANTIATE_TEST_SUITE_P(, SpelledRequests,
                         ::testing::Values(Spelling{"Completion", "/v1/completions", R"("prompt": "hello")"},
                                           Spelling{"Chat", "/v1/chat/completions",
                                                    R"("messages": [{"role": "user", "content": "hello"}])"}),
                         [](const auto& of) { return of.param.name; });

TEST_P(SpelledRequests, OverAFullQueueAre429) {
  ServerOptions options = default_server_options();
  options.queue.max_requests = 2;
  ServedModel served(options);
  served.load();
  Admission& admission = served.server().context()->admission;
  auto places = admission.take_places(2);
  ASSERT_TRUE(places.ok());
  const HttpClient::Reply reply = served.post(GetParam().path, GetParam().body());
  EXPECT_EQ(reply.status, 429);
  EXPECT_FALSE(header(reply, "Retry-After").empty());
  EXPECT_EQ(served.get("/health/live").status, 200);
  places->release();
  EXPECT_EQ(served.post(GetParam().path, GetParam().body()).status, 200);
  EXPECT_TRUE(wait_until([&] { return admission.num_waiting() == 0; }));
}

TEST_P(SpelledRequests, OfAClientThatGoesLeaveNothingBehind) {
  ServedModel served;
  served.load();
  const ServerContext& context = *served.server().context();
  for (int round = 0; round < 5; ++round) {
    int pieces = 0;
    const auto reply = served.client().post_streamed(
        GetParam().path, "application/json",
        GetParam().body(R"(, "stream": true, "ignore_eos": true, "max_tokens": 120, "n": 16, "temperature": 1)"),
        [&](std::string_view) { return ++pieces < 2; });
    EXPECT_TRUE(absl::IsCancelled(reply.status())) << reply.status();
    EXPECT_TRUE(wait_until([&] {
      const EngineSnapshot engine = context.engine.snapshot();
      return engine.running.empty() && engine.waiting.empty() && engine.blocks.available() == engine.blocks.total;
    }));
  }
  EXPECT_GT(context.engine.snapshot().counts.aborted, 0);
  const auto metrics = testing::PrometheusText::parse(served.get("/metrics").body);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  double num_aborted = 0;
  for (const auto& [labels, value] :
       metrics->families().at("transept:request_success_total").samples.at("transept:request_success_total")) {
    if (labels.at("finished_reason") == "abort") num_aborted += value;
  }
  EXPECT_EQ(num_aborted, 5) << "a request each round";
  EXPECT_TRUE(wait_until([&] { return context.admission.num_waiting() == 0; }));
}

TEST_P(SpelledRequests, PastTheirDeadlineAre504) {
  ServerOptions options = default_server_options();
  options.request_timeout = std::chrono::milliseconds(1);
  ServedModel served(options);
  served.load();
  const HttpClient::Reply reply = served.post(
      GetParam().path, GetParam().body(R"(, "ignore_eos": true, "max_tokens": 120, "n": 16, "temperature": 1)"));
  EXPECT_EQ(reply.status, 504);
  EXPECT_EQ(header(reply, "x-should-retry"), "false");
}

TEST_P(SpelledRequests, InFlightAreAnsweredByOneThatDrains) {
  ServedModel served;
  served.load();
  std::atomic<int> num_pieces = 0;
  std::string events;
  std::thread reader([&] {
    const auto reply = served.client().post_streamed(
        GetParam().path, "application/json",
        GetParam().body(R"(, "stream": true, "ignore_eos": true, "max_tokens": 120, "n": 16, "temperature": 1)"),
        [&](std::string_view piece) {
          ++num_pieces;
          events += piece;
          return true;
        });
    EXPECT_TRUE(reply.ok()) << reply.status();
  });
  EXPECT_TRUE(wait_until([&] { return num_pieces > 0; }));
  RawClient idle(served.server().http().port());
  const RawClient::Response before = idle.ask(kGetLive);
  EXPECT_EQ(before.status, 200);
  EXPECT_FALSE(before.has("Connection: close"));
  bool asked = false;
  EXPECT_TRUE(served.server().drain(std::chrono::seconds(30), [&] {
    if (!std::exchange(asked, true)) {
      EXPECT_EQ(served.get("/health/ready").status, 503);
      EXPECT_EQ(served.post(GetParam().path, GetParam().body()).status, 503);
      EXPECT_EQ(served.get("/health/live").status, 200);
      bool closed_well = false;
      EXPECT_EQ(idle.read_all(&closed_well), "");
      EXPECT_TRUE(closed_well);
      RawClient late(served.server().http().port());
      EXPECT_TRUE(late.ask(kGetLive).has("Connection: close"));
    }
    return true;
  }));
  reader.join();
  EXPECT_TRUE(events.ends_with("data: [DONE]\n\n"));
}

TEST(ApiService, StopCutsWhatIsLeft) {
  ServedModel served;
  served.load();
  std::atomic<int> num_pieces = 0;
  std::thread reader([&] {
    const auto reply = served.client().post_streamed(
        "/v1/completions", "application/json",
        R"({"prompt": "hello", "stream": true, "ignore_eos": true, "max_tokens": 120, "n": 16, "temperature": 1})",
        [&](std::string_view) {
          ++num_pieces;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return true;
        });
    if (!reply.ok()) {
      EXPECT_FALSE(reply.ok());  // cut short, and not a false end
    }
  });
  EXPECT_TRUE(wait_until([&] { return num_pieces > 0; }));
  served.server().stop();
  reader.join();
}

}  // namespace
}  // namespace transept
