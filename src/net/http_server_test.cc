// Requests, limits and timeouts over real sockets; what happens to answers is http_server_answers_test.cc's.
#include "net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "base/allocation_count_testing.h"
#include "base/mutex.h"
#include "net/http_server_testing.h"

namespace transept {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

using HttpServerRequestsTest = HttpServerTest;

TEST_F(HttpServerRequestsTest, AnswersOneAfterAnotherOnOneConnection) {
  start();
  RawClient client(server->port());
  for (int i = 0; i < 3; ++i) {
    const auto response = client.ask(post_request("/a?b=" + std::to_string(i), "body"));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "POST /a?b=" + std::to_string(i) + " body");
    EXPECT_TRUE(response.has("Content-Type: text/plain"));
    EXPECT_THAT(response.head, HasSubstr("\r\nDate: "));
    EXPECT_THAT(response.head, Not(HasSubstr("Connection")));
  }
  EXPECT_EQ(server->num_connections(), 1);
  const auto done = service.wait_for_done(3);
  EXPECT_EQ(done[0].status, 200);
  EXPECT_EQ(done[0].request.path, "/a");
  EXPECT_TRUE(done[0].request.peer_is_loopback);
  EXPECT_EQ(done[0].request.peer, "127.0.0.1");
  client.close();
  EXPECT_TRUE(becomes_true([&] { return server->num_connections() == 0; }));
}

// However they come: together, in halves, with bodies of both kinds; none is lost, the order stays.
TEST_F(HttpServerRequestsTest, ServesPipelinedRequestsInOrder) {
  start();
  std::string all, expected;
  for (int i = 0; i < 200; ++i) {
    const std::string path = "/" + std::to_string(i);
    if (i % 3 == 0) {
      all += get_request(path);
      expected += "GET " + path + "? ";
    } else if (i % 3 == 1) {
      all += post_request(path, "body " + path);
      expected.append("POST ").append(path).append("? body ").append(path);
    } else {
      all +=
          "POST " + path + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
      expected += "POST " + path + "? abcd";
    }
  }
  for (const size_t piece : {all.size(), size_t{1000}, size_t{7}}) {
    RawClient client(server->port());
    std::thread sender([&] {
      for (size_t i = 0; i < all.size(); i += piece) client.send(std::string_view(all).substr(i, piece));
    });
    std::string got;
    for (int i = 0; i < 200; ++i) got += client.read_response().body;
    sender.join();
    EXPECT_EQ(got, expected) << piece;
  }
}

// Answers that come late: requests wait in the socket, or in what was read ahead.
TEST_F(HttpServerRequestsTest, PipelinedRequestsWaitForTheirTurn) {
  hold_requests();
  start();
  RawClient client(server->port());
  client.send(get_request("/0"));
  held(0);
  client.send(get_request("/1") + get_request("/2"));
  for (size_t i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(10ms);
    held(i)->respond(text_response(200, std::to_string(i)));
    EXPECT_EQ(client.read_response().body, std::to_string(i));
  }
}

TEST_F(HttpServerRequestsTest, ConnectionsLastAsHttpSays) {
  start();
  RawClient closing(server->port());
  closing.send(get_request("/", "Connection: close\r\n"));
  std::string all = closing.read_all();
  EXPECT_THAT(all, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(all, EndsWith("GET /? "));

  RawClient old(server->port());
  old.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.read_all(), HasSubstr("\r\nConnection: close\r\n"));

  RawClient old_and_kept(server->port());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(old_and_kept.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").has("Connection: keep-alive"));
  }
}

TEST_F(HttpServerRequestsTest, HeadIsGetWithoutABody) {
  start();
  RawClient client(server->port());
  client.send("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n" + get_request("/y"));
  const auto head = client.read_response(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.has("Content-Length: 9"));
  EXPECT_EQ(client.read_response().body, "GET /y? ");
}

TEST_F(HttpServerRequestsTest, AbsoluteTargetsNameTheHost) {
  service.handler = [](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    responder->respond(text_response(200, *request.header("host") + request.path));
  };
  start();
  RawClient client(server->port());
  EXPECT_EQ(client.ask("GET http://evil:80/p HTTP/1.1\r\nHost: good\r\n\r\n").body, "evil:80/p");
}

TEST_F(HttpServerRequestsTest, RequestIdsAreTheClientsOrOurs) {
  service.handler = [](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    responder->respond(text_response(200, request.request_id));
  };
  start();
  RawClient client(server->port());
  const std::string longest(128, 'x');
  for (const std::string& good : {std::string("a.B_9:/-"), longest}) {
    const auto response = client.ask(get_request("/", "X-Request-Id: " + good + "\r\n"));
    EXPECT_EQ(response.body, good);
    EXPECT_TRUE(response.has("X-Request-Id: " + good));
  }
  std::set<std::string> ours;
  for (const std::string& bad : {std::string(), std::string("a b"), std::string("a\"b"), longest + "x"}) {
    const auto response = client.ask(get_request("/", "X-Request-Id: " + bad + "\r\n"));
    EXPECT_THAT(response.body, MatchesRegex("req-[0-9a-f]{24}"));
    EXPECT_TRUE(response.has("X-Request-Id: " + response.body));
    ours.insert(response.body);
  }
  EXPECT_EQ(ours.size(), 4);
}

// The answer can be read to its end, and the connection is closed; what follows is never taken for a request.
TEST_F(HttpServerRequestsTest, MalformedRequestsEndTheConnection) {
  std::atomic<int> num_heads = 0;
  service.decide = [&](const HttpRequest&) {
    ++num_heads;
    return HttpService::Decision{.max_body_bytes = 100};
  };
  options.max_request_line_bytes = 100;
  options.max_header_bytes = 200;
  options.max_headers = 5;
  start();
  const std::string smuggled = get_request("/smuggled");
  const std::pair<std::string, int> cases[] = {
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: a\n\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\nHost: a\r\nExpect: cake\r\n\r\n", 417},
      {"GET /" + std::string(100, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(200, 'x') + "\r\n\r\n", 431},
      {"GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\nC:\r\nD:\r\nE:\r\n\r\n", 431},
      {"\x16\x03\x01\x02", 400},
  };
  size_t num_done = 0;
  for (const auto& [bytes, status] : cases) {
    RawClient client(server->port());
    client.send(bytes + smuggled);
    const auto response = client.read_response();
    EXPECT_EQ(response.status, status) << bytes;
    EXPECT_TRUE(response.has("Connection: close")) << bytes;
    EXPECT_FALSE(response.body.empty());
    bool ended_well = false;
    EXPECT_EQ(client.read_all(&ended_well), "") << bytes;
    EXPECT_TRUE(ended_well) << bytes;
    EXPECT_EQ(service.wait_for_done(++num_done).back().status, status);
  }
  EXPECT_EQ(num_heads, 0);
}

TEST_F(HttpServerRequestsTest, MalformedChunksEndTheConnection) {
  start();
  for (const char* body : {"1 \r\na\r\n0\r\n\r\n", "g\r\n", "1\r\nab\r\n", "1\na\r\n", "-1\r\n", "0x1\r\na\r\n"}) {
    RawClient client(server->port());
    client.send(std::string("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n") + body +
                get_request("/smuggled"));
    EXPECT_EQ(client.read_response().status, 400) << body;
    EXPECT_EQ(client.read_all(), "") << body;
  }
}

// A client that sends a large body first, and only then reads, sees the refusal.
TEST_F(HttpServerRequestsTest, BodiesThatAreTooLargeAreRefusedReadably) {
  service.decide = [](const HttpRequest&) { return HttpService::Decision{.max_body_bytes = 1000}; };
  start();
  EXPECT_EQ(RawClient(server->port()).ask(post_request("/", std::string(1000, 'x'))).status, 200);
  RawClient declared(server->port());
  // Declared alone: the answer does not wait for a byte of it.
  EXPECT_EQ(declared.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n").status, 413);
  RawClient sent(server->port());
  EXPECT_TRUE(sent.send(post_request("/", std::string(20 << 20, 'x'))));
  EXPECT_EQ(sent.read_response().status, 413);
  RawClient chunked(server->port());
  EXPECT_EQ(chunked.ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n").status, 413);
}

TEST_F(HttpServerRequestsTest, RefusalsComeBeforeTheBody) {
  const auto ticket = std::make_shared<int>(1);
  service.decide = [&](const HttpRequest& request) {
    HttpService::Decision decision{.max_body_bytes = 100, .ticket = ticket};
    if (request.path == "/no") decision.refusal = text_response(429, "no");
    return decision;
  };
  start();
  RawClient client(server->port());
  const auto response = client.ask("POST /no HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(response.status, 429);
  EXPECT_TRUE(response.has("Connection: close"));
  EXPECT_EQ(client.read_all(), "");
  // A request that goes before it was handed over gives its ticket back.
  RawClient leaving(server->port());
  leaving.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_TRUE(becomes_true([&] { return ticket.use_count() > 1; }));
  leaving.close();
  EXPECT_TRUE(becomes_true([&] { return ticket.use_count() == 1; }));
  EXPECT_EQ(service.wait_for_done(2)[1].status, 499);
}

// Under overload most requests are refused: a connection for each would cost more than the answer.
TEST_F(HttpServerRequestsTest, ARefusalKeepsTheConnectionIfTheBodyIsThere) {
  service.decide = [](const HttpRequest& request) {
    HttpService::Decision decision{.max_body_bytes = 100};
    if (request.path == "/no") decision.refusal = text_response(429, "no");
    return decision;
  };
  start();
  RawClient client(server->port());
  const std::string chunked = "POST /no HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  for (const std::string& request : {get_request("/no"), post_request("/no", "abc"), chunked}) {
    const auto response = client.ask(request);
    EXPECT_EQ(response.status, 429);
    EXPECT_FALSE(response.has("Connection: close"));
  }
  EXPECT_EQ(client.ask(post_request("/", "abc")).body, "POST /? abc");  // nothing of theirs is left over
  const std::string malformed = "POST /no HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n";
  for (const std::string& request : {post_request("/no", std::string(1 << 20, 'x')), malformed}) {
    RawClient other(server->port());
    EXPECT_TRUE(other.send(request));
    const auto response = other.read_response();
    EXPECT_EQ(response.status, 429);
    EXPECT_TRUE(response.has("Connection: close"));
  }
}

TEST_F(HttpServerRequestsTest, ContinuesWhereTheBodyIsWanted) {
  start();
  RawClient client(server->port());
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
  client.send(head);
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(client.ask("abc").body, "POST /? abc");
  // Nobody waits for it whose body is there.
  EXPECT_EQ(client.ask(head + "abc").status, 200);
}

TEST_F(HttpServerRequestsTest, SlowHeadsAndBodiesAreGivenUp) {
  options.header_timeout = 100ms;
  options.body_timeout = 100ms;
  options.idle_timeout = 20s;
  start();
  RawClient silent(server->port());
  EXPECT_EQ(silent.read_all(), "");  // it began nothing: nothing is answered

  RawClient slow_head(server->port());
  slow_head.send("GET / HTT");
  EXPECT_EQ(slow_head.read_response().status, 408);

  RawClient second_head(server->port());
  EXPECT_EQ(second_head.ask(get_request("/")).status, 200);
  std::this_thread::sleep_for(200ms);  // idle is no head
  second_head.send("GET / HTT");
  EXPECT_EQ(second_head.read_response().status, 408);

  // Bytes that drip do not move a head's deadline.
  RawClient dripping(server->port());
  std::atomic<bool> answered = false;
  std::thread drops([&] {
    for (int i = 0; i < 1000 && !answered; ++i, std::this_thread::sleep_for(10ms)) dripping.send("G");
  });
  EXPECT_EQ(dripping.read_response().status, 408);
  answered = true;
  drops.join();

  RawClient body(server->port());
  body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(body.read_response().status, 408);
}

// A body is given the time that it needs at a rate that is very low, and no more, however often a byte comes.
TEST_F(HttpServerRequestsTest, BodiesThatDripAreGivenUpAndSlowOnesAreNot) {
  options.body_timeout = 150ms;
  start();
  const auto send_in_pieces = [this](size_t piece_bytes, size_t num_pieces) {
    RawClient client(server->port());
    const size_t num_bytes = piece_bytes * num_pieces;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(num_bytes) + "\r\n\r\n");
    for (size_t i = 0; i < num_pieces; ++i, std::this_thread::sleep_for(20ms)) {
      client.send(std::string(piece_bytes, 'x'));
    }
    return client.read_response().status;
  };
  EXPECT_EQ(send_in_pieces(1000, 20), 200);
  EXPECT_EQ(send_in_pieces(1, 20), 408);
}

// Bytes of a body are told once: the sizes of chunks are none.
TEST_F(HttpServerRequestsTest, BytesOfBodiesAreToldAsTheyCome) {
  std::vector<size_t> told;  // on the connection's thread, until its answer
  service.take_bytes = [&](size_t num_bytes) -> std::optional<HttpResponse> {
    told.push_back(num_bytes);
    return std::nullopt;
  };
  start();
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const char* piece : {"3", "\r\n", "abc", "\r\n", "2\r", "\nde\r\n", "0\r\n", "\r\n"}) {
    std::this_thread::sleep_for(20ms);
    client.send(piece);
  }
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_THAT(told, ::testing::ElementsAre(3, 5));
}

TEST_F(HttpServerRequestsTest, ABodyOnItsWayCanBeRefused) {
  Mutex mutex;
  std::vector<std::shared_ptr<IncomingBody>> bodies;
  service.await = [&](std::shared_ptr<IncomingBody> body) -> std::optional<HttpResponse> {
    const MutexLock lock(mutex);
    bodies.push_back(std::move(body));
    if (bodies.size() == 3) return text_response(429, "no room");
    return std::nullopt;
  };
  const auto num_bodies = [&] {
    const MutexLock lock(mutex);
    return bodies.size();
  };
  start();
  const std::string request = post_request("/a", std::string(100, 'x'));
  {
    RawClient client(server->port());
    client.send(request.substr(0, request.size() - 50));
    ASSERT_TRUE(becomes_true([&] { return num_bodies() == 1; }));
    bodies[0]->refuse(text_response(429, "too slow"));
    bodies[0]->refuse(text_response(500, "a second time"));
    const auto response = client.read_response();
    EXPECT_EQ(response.status, 429);
    EXPECT_EQ(response.body, "too slow");
    EXPECT_TRUE(response.has("Connection: close"));
    client.end_sending();
    EXPECT_EQ(client.read_all(), "");
  }
  {
    RawClient client(server->port());
    client.send(request.substr(0, request.size() - 50));
    ASSERT_TRUE(becomes_true([&] { return num_bodies() == 2; }));
    client.send(request.substr(request.size() - 50));
    EXPECT_EQ(client.read_response().status, 200);
    for (const auto& body : bodies) body->refuse(text_response(429, "too late"));
    EXPECT_EQ(client.ask(request).status, 200);  // came with its head: nobody waits for it
    EXPECT_EQ(num_bodies(), 2u);
  }
  {
    RawClient client(server->port());
    client.send(request.substr(0, request.size() - 50));
    EXPECT_EQ(client.read_response().body, "no room");
  }
  for (const auto& body : bodies) body->refuse(text_response(429, "its connection has gone"));
}

TEST_F(HttpServerRequestsTest, ABodyCanBeRefusedForItsBytes) {
  service.take_bytes = [](size_t num_bytes) -> std::optional<HttpResponse> {
    if (num_bytes > 100) return text_response(429, std::to_string(num_bytes));
    return std::nullopt;
  };
  start();
  EXPECT_EQ(RawClient(server->port()).ask(post_request("/a", std::string(100, 'x'))).status, 200);
  EXPECT_EQ(RawClient(server->port()).ask(post_request("/a", std::string(101, 'x'))).body, "101");
  RawClient client(server->port());
  const std::string request = post_request("/a", std::string(150, 'x'));
  client.send(request.substr(0, request.size() - 100));
  usleep(20000);
  client.send(request.substr(request.size() - 100));
  EXPECT_EQ(client.read_response().body, "150");
}

TEST_F(HttpServerRequestsTest, IdleConnectionsAreClosedSilently) {
  options.idle_timeout = 100ms;
  start();
  RawClient client(server->port());
  EXPECT_EQ(client.ask(get_request("/")).status, 200);
  bool ended_well = false;
  EXPECT_EQ(client.read_all(&ended_well), "");
  EXPECT_TRUE(ended_well);
}

TEST_F(HttpServerRequestsTest, ConnectionsHaveABound) {
  options.max_connections = 2;
  start();
  RawClient a(server->port());
  RawClient b(server->port());
  EXPECT_EQ(a.ask(get_request("/")).status, 200);
  EXPECT_EQ(b.ask(get_request("/")).status, 200);
  RawClient c(server->port());
  EXPECT_EQ(c.ask(get_request("/")).status, 503);
  c.close();
  a.close();
  EXPECT_TRUE(becomes_true([&] { return RawClient(server->port()).ask(get_request("/")).status == 200; }));
  EXPECT_EQ(b.ask(get_request("/")).status, 200);
}

TEST_F(HttpServerRequestsTest, SaysWhereItListens) {
  start();
  EXPECT_EQ(server->address(), "127.0.0.1:" + std::to_string(server->port()));
  EXPECT_TRUE(server->is_loopback());
  HttpServer::Options taken = options;
  taken.port = server->port();
  const auto second = HttpServer::start(taken, service);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(error_message(second.status()),
              HasSubstr("127.0.0.1 port " + std::to_string(server->port()) + ": the address is in use"));

  HttpServer::Options named = options;
  named.host = "localhost";
  const auto local = HttpServer::start(named, service);
  ASSERT_TRUE(local.ok()) << local.status();
  EXPECT_TRUE((*local)->is_loopback());
  EXPECT_EQ(RawClient((*local)->port()).ask(get_request("/")).status, 200);

  HttpServer::Options everywhere = options;
  everywhere.host = "0.0.0.0";
  const auto all = HttpServer::start(everywhere, service);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_FALSE((*all)->is_loopback());

  HttpServer::Options nowhere = options;
  nowhere.host = "no such host";
  EXPECT_THAT(error_message(HttpServer::start(nowhere, service).status()), HasSubstr("no such host"));
}

// The next one is taken as ever.
TEST_F(HttpServerRequestsTest, AConnectionThatFindsNoMemoryIsTheOnlyOneLost) {
  constexpr size_t kBufferBytes = 16 << 10;  // of an HttpConnection
  start();
  testing::fail_next_allocation_of_any_thread(kBufferBytes);
  RawClient lost(server->port());
  EXPECT_EQ(lost.read_all(), "");
  EXPECT_TRUE(testing::has_failed_allocation());
  RawClient next(server->port());
  EXPECT_EQ(next.ask(get_request("/")).status, 200);
  EXPECT_EQ(server->num_connections(), 1);
}

// Every client gets its own answers, whole.
TEST_F(HttpServerRequestsTest, ManyConnectionsAtOnce) {
  options.num_threads = 4;
  start();
  constexpr int kNumClients = 32, kNumRequests = 50;
  std::atomic<int> num_right = 0;
  std::vector<std::thread> threads;
  threads.reserve(kNumClients);
  for (int c = 0; c < kNumClients; ++c) {
    threads.emplace_back([&, c] {
      RawClient client(server->port());
      for (int i = 0; i < kNumRequests; ++i) {
        const std::string body =
            std::to_string(c) + " " + std::to_string(i) + std::string(static_cast<size_t>(i) * 100, 'x');
        if (client.ask(post_request("/", body)).body == "POST /? " + body) ++num_right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_right, kNumClients * kNumRequests);
  EXPECT_EQ(service.wait_for_done(kNumClients * kNumRequests).size(), kNumClients * kNumRequests);
}

}  // namespace
}  // namespace transept
