// /v1/realtime as a route: who may come in, with which model, dialect and key. Live transcription is a fake.
#include "server/realtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "net/websocket_testing.h"
#include "server/api_service.h"
#include "server/prometheus_testing.h"
#include "server/realtime_session_testing.h"
#include "server/server_testing.h"

namespace transept {
namespace {

using testing::FakeSpeech;
using ::testing::HasSubstr;
using testing::member;
using testing::parse_json;
using testing::PrometheusText;
using testing::read_frame;

class RealtimeTest : public ::testing::Test {
 protected:
  void start(std::vector<std::string> keys = {}) {
    house.options().api_keys = std::move(keys);
    house.options().served_model_names = {"first", "second"};
    auto fake = std::make_unique<FakeSpeech>();
    speech = fake.get();
    hub =
        std::make_unique<RealtimeHub>(std::move(fake), RealtimeHub::Options{.max_sessions = 1}, house.metrics(), clock);
    house.set_realtime(hub.get());
    service.set_context(house.context());
    HttpServer::Options options;
    options.port = 0;
    auto started = HttpServer::start(options, service);
    ASSERT_TRUE(started.ok()) << started.status();
    server = std::move(started).value();
  }
  void TearDown() override { server.reset(); }

  static std::string request(std::string_view query = "", std::string_view more = "") {
    return str_cat("GET /v1/realtime", query, " HTTP/1.1\r\nHost: localhost\r\n", testing::kHandshakeHeaders, more,
                   "\r\n");
  }
  RawClient::Response refused(const std::string& bytes) {
    RawClient client(server->port());
    return client.ask(bytes);
  }
  void expect_refused(const std::string& bytes, int status, std::string_view param) {
    const auto response = refused(bytes);
    EXPECT_EQ(response.status, status) << bytes;
    EXPECT_THAT(response.body, HasSubstr(str_cat("\"param\": ", param))) << bytes;
  }
  // The first event; `head`: of the answer.
  Json opened(const std::string& bytes, std::string* head = nullptr) {
    Json event = Json::object();
    {
      RawClient client(server->port());
      client.send(bytes);
      const std::string answer = client.read_until("\r\n\r\n");
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << answer;
      if (head != nullptr) *head = answer;
      const auto frame = read_frame(client);
      EXPECT_TRUE(frame.has_value());
      if (frame.has_value()) event = parse_json(frame->payload);
    }
    EXPECT_TRUE(becomes_true([&] { return hub->counts().num_sessions == 0; }));
    return event;
  }
  Json secret(const std::string& body, std::string_view key) {
    RawClient client(server->port());
    const auto response = client.ask(str_cat("POST /v1/realtime/client_secrets HTTP/1.1\r\nHost: localhost\r\n",
                                             "Authorization: Bearer ", key, "\r\nContent-Length: ", body.size(),
                                             "\r\nContent-Type: application/json\r\n\r\n", body));
    EXPECT_THAT(response.status, ::testing::AnyOf(200, 400, 401)) << response.body;
    return parse_json(response.body);
  }

  std::atomic<ServerState> state{ServerState::kReady};
  testing::ServerHouse house;
  SteadyClock clock;
  AccessLog log{{}};
  ApiService service{house.options(), state, house.metrics(), log};
  FakeSpeech* speech = nullptr;
  std::unique_ptr<RealtimeHub> hub;
  std::unique_ptr<HttpServer> server;
};

std::string transcription_of(const Json& event, std::string_view field) {
  const Json& value =
      member(member(member(member(member(event, "session"), "audio"), "input"), "transcription"), field);
  return value.is_null() ? "" : value.as_string();
}

TEST_F(RealtimeTest, OpensForEveryWayToAsk) {
  start();
  for (const char* query : {"", "?intent=transcription", "?model=first", "?intent=transcription&model=first"}) {
    const Json event = opened(request(query));
    EXPECT_EQ(member(event, "type").as_string(), "session.created") << query;
    EXPECT_EQ(transcription_of(event, "model"), "first") << query;
  }
  EXPECT_EQ(transcription_of(opened(request("?model=second")), "model"), "second");
}

TEST_F(RealtimeTest, IsRefusedBeforeTheUpgrade) {
  start();
  expect_refused(request("?model=third"), 404, "\"model\"");
  expect_refused(request("?intent=conversation"), 400, "\"intent\"");
  expect_refused(request("?call_id=1"), 400, "\"call_id\"");
  expect_refused(request("", "Sec-WebSocket-Protocol: other\r\n"), 400, "\"Sec-WebSocket-Protocol\"");
  house.set_realtime(nullptr);
  expect_refused(request(), 400, "\"model\"");
}

TEST_F(RealtimeTest, ModelsWithoutAudioAreRefused) {
  start();
  house.set_realtime(nullptr);
  EXPECT_THAT(secret("{}", "").dump(), HasSubstr("does not transcribe"));
}

TEST_F(RealtimeTest, TooManyAreToldWhenToAskAgain) {
  start();
  RawClient first(server->port());
  first.send(request());
  first.read_until("\r\n\r\n");
  const auto response = refused(request());
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.head, HasSubstr("\r\nRetry-After: "));
  EXPECT_THAT(response.body, HasSubstr("--max-live-sessions"));
  first.close();
  ASSERT_TRUE(becomes_true([&] { return hub->counts().num_sessions == 0; }));
  opened(request());
}

// A handshake that is refused behind the route's own decision gives its place back.
TEST_F(RealtimeTest, ABrokenHandshakeHoldsNoPlace) {
  start();
  for (int i = 0; i < 3; ++i) {
    RawClient client(server->port());
    EXPECT_EQ(client.ask("GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 426);
  }
  EXPECT_TRUE(becomes_true([&] { return hub->counts().num_sessions == 0; }));
  opened(request());
}

TEST_F(RealtimeTest, TheBetaIsChosenByItsHeaderOrSubprotocol) {
  start();
  EXPECT_EQ(member(opened(request("", "OpenAI-Beta: realtime=v1\r\n")), "type").as_string(),
            "transcription_session.created");
  EXPECT_EQ(
      member(opened(request("", "Sec-WebSocket-Protocol: realtime, openai-beta.realtime-v1\r\n")), "type").as_string(),
      "transcription_session.created");
  EXPECT_EQ(member(opened(request("", "OpenAI-Beta: assistants=v2\r\n")), "type").as_string(), "session.created");
}

TEST_F(RealtimeTest, AKeyMayBeASubprotocolAndIsNotSentBackOrLogged) {
  start({"secret-key"});
  const std::string offer = "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.secret-key\r\n";
  ::testing::internal::CaptureStderr();
  std::string head;
  opened(request("", offer), &head);
  opened(request("", "Authorization: Bearer secret-key\r\n"));
  EXPECT_EQ(refused(request()).status, 401);
  EXPECT_EQ(refused(request("", "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.other\r\n")).status, 401);
  EXPECT_EQ(refused(request("", "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.\r\n")).status, 401);
  EXPECT_THAT(head, HasSubstr("\r\nSec-WebSocket-Protocol: realtime\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("secret-key")));
  EXPECT_TRUE(becomes_true([&] { return server->num_connections() == 0; }));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("secret-key")));
  // Of no other route.
  EXPECT_EQ(refused("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n" +
                    offer + "\r\n")
                .status,
            401);
}

TEST_F(RealtimeTest, AClientSecretOpensASessionOfItsOwnKindAndNothingElse) {
  start({"secret-key"});
  const Json made =
      secret(R"({"expires_after": {"anchor": "created_at", "seconds": 10}, "session": {"type": "transcription",
      "audio": {"input": {"transcription": {"model": "second", "prompt": "p"}}}}})",
             "secret-key");
  const std::string key = member(made, "value").as_string();
  EXPECT_TRUE(key.starts_with("ek_"));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_NEAR(static_cast<double>(member(made, "expires_at").as_int()), std::chrono::duration<double>(now).count() + 10,
              5);
  EXPECT_EQ(transcription_of(made, "model"), "second");
  const std::string offer = str_cat("Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.", key, "\r\n");
  Json event = opened(request("", offer));
  EXPECT_EQ(transcription_of(event, "model"), "second");
  EXPECT_EQ(transcription_of(event, "prompt"), "p");
  event = opened(request("?model=first", str_cat("Authorization: Bearer ", key, "\r\n")));
  EXPECT_EQ(transcription_of(event, "model"), "first");
  EXPECT_EQ(transcription_of(event, "prompt"), "p");
  EXPECT_EQ(
      refused(str_cat("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ", key, "\r\n\r\n")).status,
      401);
  EXPECT_THAT(secret("{}", key).dump(), HasSubstr("invalid_api_key"));
  EXPECT_TRUE(member(secret("{}", "secret-key"), "value").as_string().starts_with("ek_"));
}

TEST_F(RealtimeTest, AClientSecretsFieldsAreChecked) {
  start();
  const auto param = [&](const std::string& body) {
    const Json error = member(secret(body, ""), "error");
    return member(error, "param").is_null() ? "" : member(error, "param").as_string();
  };
  EXPECT_EQ(param(R"({"expires_after": 10})"), "expires_after");
  EXPECT_EQ(param(R"({"expires_after": {"anchor": "now"}})"), "expires_after.anchor");
  for (const char* seconds : {"9", "7201", "10.5", "\"10\"", "1e30"}) {
    EXPECT_EQ(param(str_cat(R"({"expires_after": {"seconds": )", seconds, "}}")), "expires_after.seconds") << seconds;
  }
  EXPECT_EQ(param(R"({"session": {"type": "realtime"}})"), "session.type");
  EXPECT_EQ(param(R"({"session": {"audio": {"input": {"transcription": {"language": "xx"}}}}})"),
            "session.audio.input.transcription.language");
  EXPECT_EQ(param(str_cat(R"({"session": {"audio": {"input": {"transcription": {"prompt": ")", std::string(2048, 'p'),
                          "\"}}}}}")),
            "session");
  EXPECT_EQ(param("[]"), "");
}

TEST_F(RealtimeTest, MetricsKnowTheSessions) {
  start();
  opened(request());
  refused(request("?model=third"));
  speech->live_counts[LiveCount::kHypotheses] = 7;
  speech->live_counts[LiveCount::kWordsTold] = 5;
  speech->live_counts[LiveCount::kWordsRevised] = 2;
  const RealtimeStats stats{hub->counts(), hub->speech().counts()};
  const auto metrics = PrometheusText::parse(house.metrics().text({}, {}, {}, nullptr, &stats));
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->value("transept:live_sessions_total", {{"model_name", "g2p"}}), 1);
  EXPECT_EQ(metrics->value("transept:live_hypotheses_total", {{"model_name", "g2p"}, {"what", "answered"}}), 7);
  EXPECT_EQ(metrics->value("transept:live_words_total", {{"model_name", "g2p"}}), 5);
  EXPECT_EQ(metrics->value("transept:live_revised_words_total", {{"model_name", "g2p"}}), 2);
  EXPECT_EQ(metrics->value("transept:live_sessions", {{"model_name", "g2p"}}), 0);
  EXPECT_EQ(metrics->value("transept:live_server_events_total", {{"kind", "session"}, {"model_name", "g2p"}}), 1);
  EXPECT_EQ(metrics->value("transept:live_items_total", {{"end", "completed"}, {"model_name", "g2p"}}), 0);
}

}  // namespace
}  // namespace transept
