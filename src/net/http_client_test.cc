// The client against a server that says what it is told to: answers in every framing, cut anywhere; answers that lie;
// connections that stay open, go away in between, or never speak.
#include "net/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/fake_http_server_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::transept::testing::FakeHttpServer;
using Connection = FakeHttpServer::Connection;

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\n";

HttpClient client_of(const FakeHttpServer& server, HttpClient::Options options = {}) {
  return HttpClient("127.0.0.1", server.port(), options);
}

// Answers every request of every connection with these bytes.
FakeHttpServer::Handler always(std::string bytes) {
  return [bytes = std::move(bytes)](Connection& connection) {
    while (connection.read_request().has_value()) connection.send(bytes);
  };
}

// One request, these bytes, and the end of the connection.
FakeHttpServer::Handler once(std::string bytes) {
  return [bytes = std::move(bytes)](Connection& connection) {
    if (connection.read_request().has_value()) connection.send(bytes);
  };
}

StatusOr<HttpClient::Reply> get_from(const FakeHttpServer::Handler& handler, HttpClient::Options options = {}) {
  FakeHttpServer server(handler);
  return client_of(server, options).get("/");
}

// Else what is behind it would be read as an answer, or as none for ever.
TEST(HttpClientTest, ASwitchOfProtocolsThatWasNotAskedForIsNoAnswer) {
  const auto handler = once("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n" +
                            std::string(kOk) + "Content-Length: 0\r\n\r\n");
  EXPECT_TRUE(absl::IsDataLoss(get_from(handler).status()));
  FakeHttpServer other(once("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"));
  bool is_asked = false;
  const HttpClient::Sink sink{
      .on_head = [](int, const HttpHeaders&) { return true; },
      .on_piece = [](std::string_view) { return true; },
      .is_wanted = [] { return true; },
      .on_upgrade = [&](const HttpHeaders&, const ClientSocket&, const std::string&) { is_asked = true; }};
  EXPECT_TRUE(absl::IsDataLoss(client_of(other).pass("GET", "/", {}, "", sink)));
  EXPECT_FALSE(is_asked);
}

TEST(HttpUrlTest, TakesHostPortAndPath) {
  const auto parsed = [](std::string_view text) {
    const StatusOr<HttpUrl> url = HttpUrl::parse(text);
    return url.ok() ? str_cat(url->host, "|", url->port, "|", url->path) : "refused";
  };
  EXPECT_EQ(parsed("http://localhost"), "localhost|80|/");
  EXPECT_EQ(parsed("HTTP://localhost:8000/"), "localhost|8000|/");
  EXPECT_EQ(parsed("http://10.0.0.1:65535/v1/x?a=b"), "10.0.0.1|65535|/v1/x?a=b");
  EXPECT_EQ(parsed("http://host?a=b"), "host|80|/?a=b");
  EXPECT_EQ(parsed("http://[::1]:8000/v1"), "::1|8000|/v1");
  EXPECT_EQ(parsed("http://[::1]"), "::1|80|/");
  for (const char* bad : {"", "localhost:8000", "http://", "http://:80", "http://h:", "http://h:0", "http://h:65536",
                          "http://h:8a", "http://h:-1", "http://[::1", "http://[::1]8000", "http://[host]:1",
                          "http://user@host/", "http://h/a b", "http://h/\r\nX: y", "http://h/#part", "ftp://h"}) {
    EXPECT_EQ(parsed(bad), "refused") << bad;
  }
  EXPECT_TRUE(absl::IsUnimplemented(HttpUrl::parse("https://host/").status()));
}

TEST(HttpClientTest, SendsARequestThatIsWhole) {
  std::string seen;
  uint16_t port = 0;
  StatusOr<HttpClient::Reply> reply;
  {
    FakeHttpServer server([&](Connection& connection) {
      seen = connection.read_request().value_or("");
      connection.respond(201, "made");
    });
    port = server.port();
    reply = client_of(server).post("/v1/x?y=z", "text/plain", "body\r\n\r\nof it", {{"Authorization", "Bearer k"}});
  }
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->status, 201);
  EXPECT_EQ(reply->body, "made");
  EXPECT_EQ(reply->headers[0], std::make_pair(std::string("Content-Type"), std::string("application/json")));
  EXPECT_THAT(seen,
              AllOf(StartsWith("POST /v1/x?y=z HTTP/1.1\r\n"), HasSubstr("\r\nContent-Type: text/plain\r\n"),
                    HasSubstr(str_cat("\r\nHost: 127.0.0.1:", port, "\r\n")), HasSubstr("\r\nContent-Length: 13\r\n"),
                    HasSubstr("\r\nAuthorization: Bearer k\r\n"), EndsWith("\r\n\r\nbody\r\n\r\nof it")));
}

TEST(HttpClientTest, RefusesWhatWouldForgeARequest) {
  HttpClient client("127.0.0.1", 1, {});
  EXPECT_TRUE(absl::IsInvalidArgument(client.get("/\r\nX: y").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client.get("/a b").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client.get("x").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client.get("/", {{"A", "b\r\nC: d"}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client.get("/", {{"A:", "b"}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client.post("/", "a\nb", "").status()));
}

TEST(HttpClientTest, ReadsEveryFraming) {
  const std::string head(kOk);
  for (const std::string& answer : {
           head + "Content-Length: 5\r\n\r\nhello",
           head + "transfer-encoding: Chunked\r\n\r\n2\r\nhe\r\n03;x=y\r\nllo\r\n0\r\nTrailer: t\r\n\r\n",
           head + "\r\nhello",
           std::string("HTTP/1.0 200 Fine\r\nContent-Length: 5\r\n\r\nhello"),
           "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + head +
               "Content-Length: 5\r\n\r\nhello",
       }) {
    const StatusOr<HttpClient::Reply> reply = get_from(once(answer));
    ASSERT_TRUE(reply.ok()) << reply.status() << " of " << answer;
    EXPECT_EQ(reply->body, "hello") << answer;
    EXPECT_EQ(reply->status, 200);
  }
  const StatusOr<HttpClient::Reply> none = get_from(always("HTTP/1.1 204 No Content\r\n\r\n"));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->body, "");
}

// Every byte on its own.
TEST(HttpClientTest, ReadsAnswersThatComeInCrumbs) {
  const std::string answer =
      std::string(kOk) + "Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\nA\r\n and\r\nthen\r\n0\r\n\r\n";
  const StatusOr<HttpClient::Reply> reply = get_from([&](Connection& connection) {
    connection.read_request();
    for (const char c : answer) {
      connection.send(std::string_view(&c, 1));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    connection.wait_until_gone();
  });
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->body, "first and\r\nthen");
}

TEST(HttpClientTest, AnswersThatAreNotHttpAreDataLoss) {
  const std::string head(kOk);
  for (const std::string& answer : {
           std::string("hello, world, this is no HTTP\r\n\r\n"),
           std::string("HTTP/2.0 200 OK\r\n\r\n"),
           std::string("HTTP/1.1 2x0 OK\r\n\r\n"),
           std::string("HTTP/1.1 -20 OK\r\n\r\n"),
           std::string("HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
           head + "no colon\r\n\r\n",
           head + ": none\r\n\r\n",
           head + "A b: c\r\n\r\n",
           head + "Content-Length: -1\r\n\r\n",
           head + "Content-Length: \r\n\r\n",
           head + "Content-Length: 99999999999999999999\r\n\r\n",
           head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
           head + "Transfer-Encoding: gzip\r\n\r\n",
           head + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n1\r\na\r\n0\r\n\r\n",
           head + "Transfer-Encoding: chunked\r\n\r\nx\r\n",
           head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n",
           head + "Transfer-Encoding: chunked\r\n\r\n\r\n",
           head + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
           head + "X: " + std::string(1 << 17, 'x') + "\r\n\r\n",
       }) {
    const StatusOr<HttpClient::Reply> reply = get_from(once(answer));
    EXPECT_TRUE(absl::IsDataLoss(reply.status())) << reply.status() << " of " << answer.substr(0, 99);
  }
}

TEST(HttpClientTest, ABodyCutShortIsDataLoss) {
  const std::string head(kOk);
  for (const std::string& answer :
       {std::string("HTTP/1.1 200"), head, head + "Content-Length: 5\r\n\r\nhell",
        head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"}) {
    const StatusOr<HttpClient::Reply> reply = get_from(once(answer));
    EXPECT_TRUE(absl::IsDataLoss(reply.status())) << reply.status() << " of " << answer;
  }
}

TEST(HttpClientTest, OneConnectionServesManyRequests) {
  FakeHttpServer server(always(str_cat(kOk, "Content-Length: 2\r\n\r\nok")));
  HttpClient client = client_of(server);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client.post("/", "text/plain", "x").ok());
  EXPECT_EQ(server.num_connections(), 1);
}

TEST(HttpClientTest, AConnectionThatTheServerEndsIsOpenedAnew) {
  for (const char* answer : {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x, Close\r\n\r\nok",
                             "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\n\r\nok",
                             "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"}) {
    FakeHttpServer server(once(answer));
    HttpClient client = client_of(server);
    for (int i = 0; i < 3; ++i) {
      const StatusOr<HttpClient::Reply> reply = client.post("/", "text/plain", "x");
      ASSERT_TRUE(reply.ok()) << reply.status();
      EXPECT_EQ(reply->body, "ok");
    }
    EXPECT_EQ(server.num_connections(), 3);
  }
}

// The server reads the second request and goes: it is sent once more on a new connection, which may answer it.
TEST(HttpClientTest, ARequestIsSentAgainOnlyIfAKeptConnectionEndedWithoutAByte) {
  FakeHttpServer server([](Connection& connection) {
    connection.read_request();
    connection.respond(200, str_cat(connection.number()));
    connection.read_request();
  });
  HttpClient client = client_of(server);
  EXPECT_EQ(client.get("/")->body, "0");
  EXPECT_EQ(client.get("/")->body, "1");
  EXPECT_EQ(server.num_connections(), 2);

  FakeHttpServer silent([](Connection& connection) { connection.read_request(); });
  EXPECT_TRUE(absl::IsUnavailable(client_of(silent).get("/").status()));
  EXPECT_EQ(silent.num_connections(), 1) << "a new connection that ended is no reason to try again";

  FakeHttpServer begins([](Connection& connection) {
    connection.read_request();
    connection.respond(200, "whole");
    if (connection.read_request().has_value()) connection.send("HTTP/1.1 2");
  });
  HttpClient other = client_of(begins);
  EXPECT_TRUE(other.get("/").ok());
  EXPECT_TRUE(absl::IsDataLoss(other.get("/").status()));
  EXPECT_EQ(begins.num_connections(), 1) << "an answer had begun";
}

TEST(HttpClientTest, StreamsArriveWhileTheServerStillSpeaks) {
  std::atomic<int> num_seen{0};
  FakeHttpServer server([&](Connection& connection) {
    connection.read_request();
    connection.send(str_cat(kOk, "Transfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < 3; ++i) {
      connection.send("2\r\nab\r\n");
      while (num_seen <= i) std::this_thread::yield();  // nothing more is said before this piece was seen
    }
    connection.send("0\r\n\r\n");
    connection.wait_until_gone();
  });
  std::string text;
  const StatusOr<HttpClient::Reply> reply =
      client_of(server, {.timeout = std::chrono::seconds(20)}).post_streamed("/", "x/y", "", [&](std::string_view s) {
        text += s;
        num_seen = static_cast<int>(text.size() / 2);
        return true;
      });
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(text, "ababab");
  EXPECT_EQ(reply->body, "");
}

TEST(HttpClientTest, AnswersOfOtherStatusAreNotStreamed) {
  FakeHttpServer server(always("HTTP/1.1 429 X\r\nRetry-After: 3\r\nContent-Length: 4\r\n\r\nbusy"));
  const StatusOr<HttpClient::Reply> reply = client_of(server).post_streamed("/", "x/y", "", [](std::string_view) {
    ADD_FAILURE() << "a piece of an error";
    return true;
  });
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->status, 429);
  EXPECT_EQ(reply->body, "busy");
}

TEST(HttpClientTest, AReaderMayLeave) {
  std::atomic<bool> was_left{false};
  FakeHttpServer server([&](Connection& connection) {
    connection.read_request();
    connection.send(str_cat(kOk, "Content-Length: 100\r\n\r\nab"));
    connection.wait_until_gone();
    was_left = true;
  });
  HttpClient client = client_of(server);
  EXPECT_TRUE(absl::IsCancelled(client.post_streamed("/", "x/y", "", [](std::string_view) { return false; }).status()));
  for (int i = 0; i < 1000 && !was_left; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(was_left);
}

TEST(HttpClientTest, BodiesAreBounded) {
  const HttpClient::Options options{.max_body_bytes = 4};
  EXPECT_EQ(get_from(once("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour"), options)->body, "four");
  for (const char* answer : {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfives", "HTTP/1.1 200 OK\r\n\r\nfives",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nfiv\r\n2\r\nes\r\n0\r\n\r\n"}) {
    EXPECT_TRUE(absl::IsResourceExhausted(get_from(once(answer), options).status())) << answer;
  }
}

TEST(HttpClientTest, SilenceEndsAtTheDeadline) {
  const HttpClient::Options options{.timeout = std::chrono::milliseconds(50)};
  for (const char* answer : {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"}) {
    const StatusOr<HttpClient::Reply> reply = get_from(
        [&](Connection& connection) {
          connection.read_request();
          connection.send(answer);
          connection.wait_until_gone();
        },
        options);
    EXPECT_TRUE(absl::IsDeadlineExceeded(reply.status())) << reply.status() << " of " << answer;
  }
}

TEST(HttpClientTest, NobodyThere) {
  uint16_t port = 0;
  {
    port = FakeHttpServer([](Connection&) {}).port();
  }
  const StatusOr<HttpClient::Reply> reply = HttpClient("127.0.0.1", port, {}).get("/");
  EXPECT_TRUE(absl::IsUnavailable(reply.status())) << reply.status();
  EXPECT_THAT(error_message(reply.status()), AllOf(HasSubstr("127.0.0.1"), HasSubstr(str_cat(port))));
  EXPECT_TRUE(absl::IsUnavailable(HttpClient("name.invalid", 80, {}).get("/").status()));
}

// A server that refuses a body does not read it: the refusal arrives all the same, and the connection is not used
// again.
TEST(HttpClientTest, AnAnswerBeforeTheBodyIsReadIsTheAnswer) {
  FakeHttpServer server([](Connection& connection) {
    connection.respond(413, "too much");
    connection.wait_until_gone();
  });
  HttpClient client = client_of(server, {.timeout = std::chrono::seconds(20)});
  const std::string body(64 << 20, 'x');
  const StatusOr<HttpClient::Reply> reply = client.post("/", "x/y", body);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->status, 413);
  EXPECT_EQ(reply->body, "too much");
}

}  // namespace
}  // namespace transept
