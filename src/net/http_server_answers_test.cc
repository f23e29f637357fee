// What becomes of answers: streams, clients that go or read slowly, responders that are let go of, draining, stopping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <thread>

#include "base/mutex.h"
#include "net/http_server_testing.h"

namespace transept {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kLastChunk = "0\r\n\r\n";

class HttpServerAnswersTest : public HttpServerTest {
 protected:
  // A client whose request is held, and its responder.
  std::unique_ptr<RawClient> ask(std::string_view bytes, int receive_buffer_bytes = 0) {
    auto client = std::make_unique<RawClient>(server->port(), receive_buffer_bytes);
    client->send(bytes);
    return client;
  }

  // Writes until the client is dropped; false: it never was.
  static bool write_until_dropped(Responder& responder) {
    return becomes_true([&] {
      responder.write(std::string(16 << 10, 'x'));
      return responder.is_gone();
    });
  }
};

TEST_F(HttpServerAnswersTest, StreamsAreSentAsTheyCome) {
  hold_requests();
  start();
  const auto client = ask(get_request("/"));
  held()->start_stream(text_response(200, ""));
  const std::string head = client->read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Content-Length")));
  held()->write("one");
  EXPECT_EQ(client->read_until("one\r\n"), "3\r\none\r\n");
  held()->write("");  // would be the end
  held()->write(std::string(26, 'x'));
  EXPECT_EQ(client->read_until("x\r\n"), "1a\r\n" + std::string(26, 'x') + "\r\n");
  held()->finish();
  EXPECT_EQ(client->read_until(kLastChunk), kLastChunk);
  EXPECT_TRUE(becomes_true([&] { return held()->num_unsent_bytes() == 0; }));
  // The connection goes on, and nothing more comes of the responder.
  held()->write("late");
  held()->finish();
  held()->respond(text_response(200, "late"));
  client->send(get_request("/"));
  held(1)->respond(text_response(200, "second"));
  EXPECT_EQ(client->read_response().body, "second");
  EXPECT_EQ(service.wait_for_done(2)[0].status, 200);
  EXPECT_FALSE(held()->is_gone());
}

TEST_F(HttpServerAnswersTest, TheHeadOfAStreamMayBringTheFirstPiece) {
  hold_requests();
  start();
  const auto client = ask(get_request("/"));
  held()->start_stream(text_response(201, "first"));
  held()->finish();
  EXPECT_THAT(client->read_until(kLastChunk), EndsWith("\r\n\r\n5\r\nfirst\r\n0\r\n\r\n"));
}

TEST_F(HttpServerAnswersTest, StreamsToOldClientsEndWithTheConnection) {
  hold_requests();
  start();
  const auto client = ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  held()->start_stream(text_response(200, "one "));
  held()->write("two");
  held()->finish();
  bool ended_well = false;
  const std::string all = client->read_all(&ended_well);
  EXPECT_THAT(all, EndsWith("\r\n\r\none two"));
  EXPECT_THAT(all, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(all, Not(HasSubstr("chunked")));
  EXPECT_TRUE(ended_well);
}

TEST_F(HttpServerAnswersTest, HeadsOfStreamsHaveNoBody) {
  hold_requests();
  start();
  const auto client = ask("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  held()->start_stream(text_response(200, "one"));
  held()->write("two");
  held()->finish();
  EXPECT_THAT(client->read_until("\r\n\r\n"), HasSubstr("chunked"));
  client->send(get_request("/"));
  held(1)->respond(text_response(204, "never"));
  const auto response = client->read_response();
  EXPECT_EQ(response.status, 204);
  EXPECT_THAT(response.head, Not(HasSubstr("Content-")));
  client->send(get_request("/"));
  held(2)->respond(text_response(200, "last"));
  EXPECT_EQ(client->read_response().body, "last");
}

TEST_F(HttpServerAnswersTest, AbandonedStreamsAreSeenToBeCut) {
  hold_requests();
  start();
  const auto client = ask(get_request("/"));
  held()->start_stream(text_response(200, "one"));
  EXPECT_THAT(client->read_until("one\r\n"), EndsWith("3\r\none\r\n"));
  held()->abandon();
  EXPECT_EQ(client->read_all(), "");
  EXPECT_EQ(service.wait_for_done(1)[0].status, 200);

  // Of HTTP/1.0 a reset alone can say so.
  const auto old = ask("GET / HTTP/1.0\r\n\r\n");
  held(1)->start_stream(text_response(200, "one"));
  EXPECT_THAT(old->read_until("one"), EndsWith("one"));
  held(1)->abandon();
  bool ended_well = true;
  old->read_all(&ended_well);
  EXPECT_FALSE(ended_well);
}

TEST_F(HttpServerAnswersTest, NobodyLeftToAnswerIsAnError) {
  hold_requests();
  start();
  const auto client = ask(get_request("/"));
  held();
  let_go_of_held();
  const auto response = client->read_response();
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body, "internal error");
  EXPECT_EQ(service.wait_for_done(1)[0].status, 500);
  // A stream that nobody ends is abandoned.
  client->send(get_request("/"));
  held()->start_stream(text_response(200, "one"));
  let_go_of_held();
  EXPECT_THAT(client->read_all(), EndsWith("3\r\none\r\n"));
}

// A service that finds no memory. Each request is reported once all the same, and the server goes on.
TEST_F(HttpServerAnswersTest, WhatAServiceThrowsIsTheEndOfOneRequest) {
  service.decide = [](const HttpRequest& request) {
    if (request.path == "/head") throw std::bad_alloc();
    return HttpService::Decision{.max_body_bytes = 1 << 20};
  };
  service.take_bytes = [](size_t num_bytes) -> std::optional<HttpResponse> {
    if (num_bytes == 13) throw std::bad_alloc();
    return std::nullopt;
  };
  service.handler = [](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    if (request.path == "/stream") responder->start_stream(text_response(200, "begun"));
    if (request.path != "/good") throw std::bad_alloc();
    responder->respond(text_response(200, "good"));
  };
  start();
  size_t num_done = 0;
  for (const std::string& request :
       {get_request("/head"), get_request("/request"), post_request("/body", "thirteen byte")}) {
    const auto client = ask(request);
    const auto response = client->read_response();
    EXPECT_EQ(response.status, 500) << request;
    EXPECT_EQ(response.body, "internal error");
    EXPECT_TRUE(response.has("Connection: close"));
    EXPECT_EQ(client->read_all(), "");
    const auto done = service.wait_for_done(++num_done);
    ASSERT_EQ(done.size(), num_done);
    EXPECT_EQ(done.back().status, 500) << request;
  }
  const auto cut = ask(get_request("/stream"));
  EXPECT_THAT(cut->read_all(), EndsWith("begun\r\n"));
  EXPECT_EQ(service.wait_for_done(++num_done).back().status, 200) << "the head's";
  EXPECT_EQ(ask(get_request("/good"))->read_response().body, "good");
  EXPECT_EQ(service.wait_for_done(++num_done).size(), num_done);
  EXPECT_TRUE(server->wait_until_answered(10s));
}

// Not even the error can be told: the connection ends, and the request is reported.
TEST_F(HttpServerAnswersTest, AnErrorThatCannotBeToldIsReportedToo) {
  service.handler = [](const HttpRequest&, const std::shared_ptr<Responder>&) {};
  service.explain = [](int, const std::string&) -> HttpResponse { throw std::bad_alloc(); };
  start();
  EXPECT_EQ(ask(get_request("/"))->read_all(), "");
  const auto done = service.wait_for_done(1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, 500);
  EXPECT_TRUE(server->wait_until_answered(10s));
  EXPECT_TRUE(becomes_true([&] { return server->num_connections() == 0; }));
}

TEST_F(HttpServerAnswersTest, HeadersCannotBeginLines) {
  service.handler = [](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    HttpResponse response = text_response(200, "x");
    response.content_type = "text/plain\r\nX-Bad: 1";
    response.headers = {{"X-Good", "a\tb"},       {"X-Evil", "a\r\nX-Bad: 1"}, {"X-Evil", "a\nX-Bad: 1"},
                        {"X-Evil\r\nX-Bad", "1"}, {"content-length", "7"},     {"Connection", "close"}};
    responder->respond(std::move(response));
  };
  start();
  RawClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    const auto response = client.ask(get_request("/"));
    EXPECT_TRUE(response.has("X-Good: a\tb"));
    EXPECT_THAT(response.head, Not(HasSubstr("X-Bad")));
    EXPECT_THAT(response.head, Not(HasSubstr("X-Evil")));
    EXPECT_THAT(response.head, Not(HasSubstr("close")));
    EXPECT_EQ(response.body, "x");
  }
}

// While nothing was answered, in the middle of a stream, by closing and by ending only the sending.
TEST_F(HttpServerAnswersTest, ClientsThatGoAreNoticedAtOnce) {
  hold_requests();
  start();
  size_t index = 0;
  for (const bool streams : {false, true}) {
    for (const bool half : {false, true}) {
      const auto client = ask(get_request("/"));
      const auto responder = held(index);
      std::atomic<int> num_calls = 0;
      responder->on_gone([&] { num_calls += 100; });
      responder->on_gone([&] { ++num_calls; });  // replaces the first
      if (streams) {
        responder->start_stream(text_response(200, "one"));
        client->read_until("one\r\n");
      }
      EXPECT_FALSE(responder->is_gone());
      if (half) {
        client->end_sending();
      } else {
        client->close();
      }
      EXPECT_TRUE(becomes_true([&] { return num_calls == 1; }));
      EXPECT_TRUE(responder->is_gone());
      EXPECT_FALSE(responder->was_too_slow());
      int late_calls = 0;
      responder->on_gone([&] { ++late_calls; });
      EXPECT_EQ(late_calls, 1);
      responder->write("nothing happens");
      responder->respond(text_response(200, "nothing happens"));
      EXPECT_EQ(responder->num_unsent_bytes(), 0);
      EXPECT_EQ(service.wait_for_done(++index).back().status, 499);
    }
  }
}

// Pipelined bytes are no sign of going, and do not hide it.
TEST_F(HttpServerAnswersTest, GoingIsNoticedBehindPipelinedBytes) {
  hold_requests();
  start();
  const auto client = ask(get_request("/a"));
  const auto responder = held();
  std::atomic<bool> gone = false;
  responder->on_gone([&] { gone = true; });
  client->send(get_request("/b"));
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(gone);
  client->close();
  EXPECT_TRUE(becomes_true([&] { return gone.load(); }));
}

TEST_F(HttpServerAnswersTest, CompleteAnswersHaveNobodyGone) {
  hold_requests();
  start();
  auto client = ask(get_request("/"));
  const auto responder = held();
  const auto kept = std::make_shared<int>(1);
  std::atomic<int> num_calls = 0;
  responder->on_gone([&num_calls, kept] { ++num_calls; });
  responder->respond(text_response(200, "x"));
  EXPECT_EQ(kept.use_count(), 1);  // what it held is let go of with the answer
  EXPECT_EQ(client->read_response().status, 200);
  client->close();
  EXPECT_TRUE(becomes_true([&] { return server->num_connections() == 0; }));
  responder->on_gone([&num_calls] { ++num_calls; });
  EXPECT_EQ(num_calls, 0);
  EXPECT_EQ(service.wait_for_done(1)[0].status, 200);
}

TEST_F(HttpServerAnswersTest, SlowReadersOfStreamsAreDropped) {
  options.max_unsent_bytes = 256 << 10;
  hold_requests();
  start();
  const auto slow = ask(get_request("/"), 4096);
  const auto responder = held(0);
  const auto other = ask(get_request("/"));
  std::atomic<bool> gone = false;
  responder->on_gone([&] { gone = true; });
  responder->start_stream(text_response(200, ""));
  size_t most = 0;
  EXPECT_TRUE(becomes_true([&] {
    responder->write(std::string(16 << 10, 'x'));
    most = std::max(most, responder->num_unsent_bytes());
    return responder->is_gone();
  }));
  EXPECT_LE(most, options.max_unsent_bytes + (20 << 10));
  EXPECT_GT(most, options.max_unsent_bytes / 2);
  EXPECT_TRUE(responder->was_too_slow());
  EXPECT_TRUE(becomes_true([&] { return gone.load(); }));
  EXPECT_EQ(service.wait_for_done(1)[0].status, 499);
  bool ended_well = true;
  EXPECT_THAT(slow->read_all(&ended_well), Not(HasSubstr(std::string(kLastChunk))));
  held(1)->respond(text_response(200, "x"));
  EXPECT_EQ(other->read_response().body, "x");
}

// One piece that is large alone is no sign of a slow reader.
TEST_F(HttpServerAnswersTest, LargePiecesAndAnswersArriveWhole) {
  options.max_unsent_bytes = 1000;
  hold_requests();
  start();
  const auto client = ask(get_request("/"));
  held()->start_stream(text_response(200, ""));
  client->read_until("\r\n\r\n");
  EXPECT_TRUE(becomes_true([&] { return held()->num_unsent_bytes() == 0; }));
  held()->write(std::string(8 << 20, 'x'));
  held()->finish();
  EXPECT_EQ(client->read_until(kLastChunk).size(),
            std::string("800000\r\n\r\n").size() + (8 << 20) + kLastChunk.size());
  client->send(get_request("/"));
  held(1)->respond(text_response(200, std::string(8 << 20, 'y')));
  EXPECT_EQ(client->read_response().body, std::string(8 << 20, 'y'));
  EXPECT_FALSE(held(1)->is_gone());
}

TEST_F(HttpServerAnswersTest, ClientsThatTakeNothingAreDropped) {
  options.write_timeout = 100ms;
  hold_requests();
  start();
  const auto client = ask(get_request("/"), 4096);
  held()->respond(text_response(200, std::string(32 << 20, 'x')));
  EXPECT_TRUE(becomes_true([&] { return held()->is_gone(); }));
  EXPECT_TRUE(held()->was_too_slow());
  EXPECT_EQ(service.wait_for_done(1)[0].status, 499);
  EXPECT_TRUE(becomes_true([&] { return server->num_connections() == 0; }));
}

TEST_F(HttpServerAnswersTest, DrainingFinishesWhatIsAsked) {
  hold_requests();
  start();
  const auto working = ask(get_request("/"));
  held(0);
  const auto idle = ask(get_request("/"));
  held(1)->respond(text_response(200, "x"));
  idle->read_response();
  EXPECT_FALSE(server->wait_until_answered(1ms));
  server->drain();
  server->drain();
  EXPECT_EQ(idle->read_all(), "");
  // New connections are served, once.
  const auto late = ask(get_request("/"));
  held(2)->respond(text_response(503, "draining"));
  const auto refused = late->read_response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Connection: close"));
  EXPECT_EQ(late->read_all(), "");
  EXPECT_FALSE(server->wait_until_answered(1ms));
  held(0)->respond(text_response(200, "done"));
  EXPECT_TRUE(server->wait_until_answered(1s));  // clients that do not close are not waited for
  const auto answered = working->read_response();
  EXPECT_EQ(answered.body, "done");
  EXPECT_TRUE(answered.has("Connection: close"));
  EXPECT_EQ(working->read_all(), "");
}

TEST_F(HttpServerAnswersTest, RespondersOutliveTheServer) {
  hold_requests();
  std::atomic<int> num_heads = 0;
  service.decide = [&](const HttpRequest&) {
    ++num_heads;
    return HttpService::Decision{.max_body_bytes = 100};
  };
  start();
  const auto waiting = ask(get_request("/"));
  held(0);
  const auto streaming = ask(get_request("/"));
  held(1);
  const auto sending = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  const std::vector<std::shared_ptr<Responder>> responders = {held(0), held(1)};
  EXPECT_TRUE(becomes_true([&] { return num_heads == 3; }));  // the third never becomes a request
  responders[1]->start_stream(text_response(200, "one"));
  std::atomic<int> num_gone = 0;
  for (const auto& responder : responders) responder->on_gone([&] { ++num_gone; });
  // Answers that race with the end are no matter.
  std::atomic<bool> ends = false;
  std::thread writer([&] {
    while (!ends) responders[1]->write("more");
  });
  EXPECT_FALSE(server->wait_until_answered(1ms));
  server->stop();
  server->stop();
  EXPECT_TRUE(server->wait_until_answered(0ms));
  EXPECT_EQ(server->num_connections(), 0);
  server.reset();
  ends = true;
  writer.join();
  EXPECT_EQ(num_gone, 2);
  for (const auto& responder : responders) {
    EXPECT_TRUE(responder->is_gone());
    responder->respond(text_response(200, "x"));
    responder->start_stream(text_response(200, "x"));
    responder->write("x");
    responder->finish();
    responder->abandon();
    EXPECT_EQ(responder->num_unsent_bytes(), 0);
    EXPECT_GE(responder->seconds(), 0);
  }
  EXPECT_FALSE(waiting->read_all().starts_with("HTTP"));
  for (const auto& done : service.wait_for_done(3)) EXPECT_EQ(done.status, 499);
}

// Streams written by other threads while clients come, go and read; under the sanitizers, the proof that nobody meets
// in the wrong place.
TEST_F(HttpServerAnswersTest, ManyStreamsFromManyThreads) {
  constexpr int kNumClients = 24;
  std::vector<std::thread> writers;
  Mutex mutex;
  service.handler = [&](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    const MutexLock lock(mutex);
    writers.emplace_back([responder, path = request.path] {
      responder->on_gone([] {});
      responder->start_stream(text_response(200, path));
      for (int i = 0; i < 200; ++i) responder->write("piece of " + path);
      responder->finish();
    });
  };
  start();
  std::atomic<int> num_right = 0;
  std::vector<std::thread> clients;
  clients.reserve(kNumClients);
  for (int c = 0; c < kNumClients; ++c) {
    clients.emplace_back([&, c] {
      const std::string path = "/" + std::to_string(c);
      for (int round = 0; round < 3; ++round) {
        RawClient client(server->port());
        client.send(get_request(path));
        if (c % 3 == 0) continue;  // goes at once
        std::string all = client.read_until(c % 3 == 1 ? kLastChunk : "piece of");
        size_t num_pieces = 0;
        for (size_t at = 0; (at = all.find("piece of " + path + "\r\n", at)) != std::string::npos; ++at) ++num_pieces;
        if (c % 3 == 1 && num_pieces == 200) ++num_right;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(server->wait_until_answered(10s));
  server->stop();
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(num_right, kNumClients);
}

}  // namespace
}  // namespace transept
