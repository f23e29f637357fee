#include "proxy/proxy_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proxy/proxy_testing.h"

namespace transept::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(ProxyTest, ForwardsARequestAsItCame) {
  HttpRequest seen;
  Mutex mutex;
  const Upstream upstream("p0", [&](HttpRequest request, const std::shared_ptr<Responder>& responder) {
    const MutexLock lock(mutex);
    seen = std::move(request);
    responder->respond({.status = 418,
                        .content_type = "text/x",
                        .headers = {{"X-Mine", "a"}, {"X-Mine", "b"}, {"Retry-After", "7"}},
                        .body = "answer"});
  });
  start({&upstream});
  const auto reply = post("/v1/a%20b%2Fc?x=%41&y=", "{\"a\": 1}",
                          {{"Authorization", "Bearer k"}, {"X-Request-Id", "mine"}, {"X-Forwarded-For", "1.2.3.4"}});
  EXPECT_EQ(reply.status, 418);
  EXPECT_EQ(reply.body, "answer");
  EXPECT_EQ(*find_header(reply.headers, "Content-Type"), "text/x");
  EXPECT_EQ(*find_header(reply.headers, "Retry-After"), "7");
  EXPECT_EQ(*find_header(reply.headers, "X-Request-Id"), "mine");
  EXPECT_EQ(std::ranges::count(reply.headers, std::string("X-Mine"), &std::pair<std::string, std::string>::first), 2);
  const MutexLock lock(mutex);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/v1/a b/c");
  EXPECT_EQ(seen.query, "x=%41&y=");
  EXPECT_EQ(seen.body, "{\"a\": 1}");
  EXPECT_EQ(*seen.header("Authorization"), "Bearer k");
  EXPECT_EQ(*seen.header("Content-Type"), "application/json");
  EXPECT_EQ(*seen.header("X-Forwarded-For"), "1.2.3.4, 127.0.0.1");
  EXPECT_EQ(seen.request_id, "mine");
  EXPECT_EQ(*seen.header("Host"), server_->address()) << "who may come is for the instance to say";
}

TEST_F(ProxyTest, PassesPiecesOnAsTheyCome) {
  std::atomic<int> next = 0;
  const Upstream upstream("p0", [&](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    std::thread([responder, &next] {
      responder->start_stream({.content_type = "text/event-stream", .body = "0"});
      for (int i = 1; i < 4; ++i) {
        while (next < i) std::this_thread::sleep_for(1ms);
        responder->write(std::to_string(i));
      }
      responder->finish();
    }).detach();
  });
  start({&upstream});
  std::string got;
  const auto reply = client().post_streamed("/", "text/plain", "", [&](std::string_view piece) {
    got += piece;
    ++next;  // the next one is not written before this one was here
    return true;
  });
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(got, "0123");
  EXPECT_EQ(*find_header(reply->headers, "Content-Type"), "text/event-stream");
}

TEST_F(ProxyTest, WhoCannotBeReachedIsNotAskedAgain) {
  Upstream gone("p0");
  gone.server->stop();
  const Upstream there("p1");
  start({&gone, &there});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(post("/x", "b").status, 200);
  EXPECT_LE(service_->counts().num_again, 1);
  EXPECT_EQ(service_->counts().num_failed, 0);
}

TEST_F(ProxyTest, WithoutAnInstanceRequestsEnd) {
  start({});
  const auto none = post("/x", "b");
  EXPECT_EQ(none.status, 503);
  EXPECT_THAT(none.body, HasSubstr("no decode instance is ready"));
  EXPECT_NE(find_header(none.headers, "Retry-After"), nullptr);
  EXPECT_EQ(client().get("/health/ready")->status, 503);
  EXPECT_EQ(client().get("/health/live")->status, 200);
  Upstream gone("p0");
  gone.server->stop();
  pool_.set_records(std::span(&gone.record, 1));
  EXPECT_EQ(client().get("/health/ready")->status, 200);
  const auto broken = post("/x", "b");
  EXPECT_EQ(broken.status, 503);
  EXPECT_THAT(broken.body, HasSubstr("p0 cannot be reached"));
}

TEST_F(ProxyTest, ARefusalIsTriedElsewhereAndElsePassedOn) {
  const auto refuse = [](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    responder->respond(text_response(503, "draining"));
  };
  const Upstream refusing("p0", refuse), there("p1");
  start({&refusing, &there});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(post("/x", "b").status, 200);
  pool_.set_records(std::span(&refusing.record, 1));
  DecoderPool fresh({});
  const auto only = [&] {
    server_->stop();
    service_ = std::make_unique<ProxyService>(options_, fresh);
    fresh.set_records(std::span(&refusing.record, 1));
    server_ = std::move(HttpServer::start({.port = 0}, *service_)).value();
    return post("/x", "b");
  }();
  EXPECT_EQ(only.status, 503);
  EXPECT_EQ(only.body, "draining") << "what the instance says";
  server_->stop();
  service_.reset();
}

TEST_F(ProxyTest, SaysWhatTheLastOneSaid) {
  const auto refuse = [](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    responder->respond(
        text_response(503, R"({"error": {"message": "all encode instances differ: --dtype", "code": 1}})"));
  };
  const Upstream first("p0", refuse), second("p1", refuse);
  start({&first, &second});
  for (int i = 0; i < 12; ++i) {
    const auto reply = post("/x", "b");
    EXPECT_EQ(reply.status, 503);
    EXPECT_THAT(reply.body, HasSubstr("all encode instances differ: --dtype")) << "request " << i;
  }
  EXPECT_EQ(pool_.num_ready(std::chrono::steady_clock::now()), 0u);
  const auto last = post("/x", "b");
  EXPECT_THAT(last.body, HasSubstr("no decode instance is ready; the last one said: all encode instances differ"));
  EXPECT_NE(find_header(last.headers, "Retry-After"), nullptr);
  pool_.set_records({});
  EXPECT_THAT(post("/x", "b").body, HasSubstr("no decode instance is ready\"")) << "who said so has gone";
}

TEST_F(ProxyTest, ARefusalThatIsNoErrorOfOursIsNotRepeated) {
  const Upstream upstream("p0", [](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    responder->respond(text_response(503, "<html>"));
  });
  start({&upstream});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(post("/x", "b").body, "<html>");
  EXPECT_THAT(post("/x", "b").body, HasSubstr("no decode instance is ready\""));
}

// It refused until its encoder came. The first request after that is a stream, which keeps nobody else from it.
TEST_F(ProxyTest, WhoAnswersAgainDoesSoForAllAtOnce) {
  std::atomic<bool> refuses = true;
  const Upstream upstream("p0", [&](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    if (refuses) return responder->respond(text_response(503, "no"));
    if (request.path != "/stream") return responder->respond(text_response(200, "yes"));
    responder->start_stream({.content_type = "text/plain", .body = "begun"});
    std::thread([responder, &refuses] {
      while (!refuses) std::this_thread::sleep_for(1ms);
      responder->finish();
    }).detach();
  });
  start({&upstream});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(post("/x", "b").status, 503);
  std::this_thread::sleep_for(1100ms);  // DecoderPool::Options::refusal_pause
  refuses = false;
  int status_beside = 0;
  const auto stream = client().post_streamed("/stream", "text/plain", "", [&](std::string_view) {
    if (status_beside == 0) status_beside = post("/x", "b").status;
    refuses = true;  // which ends the stream
    return true;
  });
  EXPECT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ(status_beside, 200);
}

TEST_F(ProxyTest, ABrokenAnswerIsTriedAgainBeforeItsFirstByteAlone) {
  std::atomic<int> num_asked = 0;
  const auto breaking = [&](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    ++num_asked;
    if (request.path == "/late") responder->start_stream({.content_type = "text/plain", .body = "begun"});
    responder->abandon();
  };
  const Upstream one("p0", breaking), two("p1", breaking);
  start({&one, &two});
  const auto late = client().post("/late", "text/plain", "");
  EXPECT_TRUE(absl::IsDataLoss(late.status())) << late.status();
  EXPECT_EQ(num_asked, 1);
  EXPECT_EQ(service_->counts().num_again, 0);
}

TEST_F(ProxyTest, AClientThatGoesEndsItsRequest) {
  std::shared_ptr<Responder> kept;
  std::atomic<bool> has_gone = false;
  Mutex mutex;
  const Upstream upstream("p0", [&](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    const MutexLock lock(mutex);
    kept = responder;
    responder->on_gone([&] { has_gone = true; });
  });
  start({&upstream});
  {
    HttpClient impatient("127.0.0.1", server_->port(), {.timeout = 200ms});
    EXPECT_TRUE(absl::IsDeadlineExceeded(impatient.post("/x", "text/plain", "").status()));
  }
  for (int i = 0; i < 500 && !has_gone; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(has_gone);
  EXPECT_EQ(pool_.num_ready(std::chrono::steady_clock::now()), 1u) << "it was not the instance's fault";
}

TEST_F(ProxyTest, Limits) {
  options_.max_body_bytes = 100;
  options_.max_bodies_bytes = 150;
  options_.max_requests = 1;
  std::vector<std::shared_ptr<Responder>> kept;
  Mutex mutex;
  CondVar changed;
  const Upstream upstream("p0", [&](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    const MutexLock lock(mutex);
    kept.push_back(responder);
    changed.notify_all();
  });
  start({&upstream});
  EXPECT_EQ(post("/x", std::string(101, 'x')).status, 413);
  std::thread first([&] { EXPECT_EQ(post("/x", std::string(90, 'x')).status, 200); });
  {
    const MutexLock lock(mutex);
    while (kept.empty()) changed.wait(mutex);
  }
  const auto many = post("/x", "b");
  EXPECT_EQ(many.status, 429);
  EXPECT_THAT(many.body, HasSubstr("1 requests are in work"));
  const auto large = post("/x", std::string(90, 'x'));
  EXPECT_EQ(large.status, 429);
  EXPECT_THAT(large.body, HasSubstr("more than 150 bytes"));
  {
    const MutexLock lock(mutex);
    kept[0]->respond(text_response(200, "ok"));
    kept.clear();
  }
  first.join();
}

TEST_F(ProxyTest, AnIdIsInFlightOnce) {
  std::shared_ptr<Responder> kept;
  Mutex mutex;
  CondVar changed;
  const Upstream upstream("p0", [&](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    if (request.body != "first") return responder->respond(text_response(200, request.request_id));
    const MutexLock lock(mutex);
    kept = responder;
    changed.notify_all();
  });
  start({&upstream});
  const HttpHeaders mine = {{"X-Request-Id", "mine"}};
  std::thread first([&] { EXPECT_EQ(post("/x", "first", mine).status, 200); });
  {
    const MutexLock lock(mutex);
    while (kept == nullptr) changed.wait(mutex);
  }
  const auto second = post("/x", "second", mine);
  EXPECT_EQ(second.status, 409);
  EXPECT_THAT(second.body, HasSubstr("a request with the X-Request-Id mine is in flight"));
  EXPECT_EQ(post("/x", "other", {{"X-Request-Id", "other"}}).body, "other");
  EXPECT_EQ(post("/x", "unnamed").status, 200);
  EXPECT_EQ(client().get("/x", mine)->status, 200) << "a look changes nothing";
  {
    const MutexLock lock(mutex);
    kept->respond(text_response(200, "ok"));
    kept.reset();
  }
  first.join();
  for (int i = 0; i < 200; ++i) ASSERT_EQ(post("/x", "third", mine).status, 200) << "as soon as it is answered";
}

TEST_F(ProxyTest, WhatIsBetweenInstancesIsNotForwarded) {
  const Upstream upstream("p0");
  start({&upstream});
  EXPECT_EQ(client().get("/v1/inputs/r/0")->status, 404);
  EXPECT_EQ(post("/v1/encode", "{}").status, 404);
  EXPECT_EQ(client().get("/debug/state")->body, "GET /debug/state? ") << "this client is on the machine";
  service_->drain();
  const auto drained = post("/x", "b");
  EXPECT_EQ(drained.status, 503);
  EXPECT_THAT(drained.body, HasSubstr("shutting down"));
  EXPECT_EQ(client().get("/health/ready")->status, 503);
}

TEST_F(ProxyTest, HasMetricsOfItsOwn) {
  Upstream gone("p0"), draining("p2", [](const HttpRequest&, const std::shared_ptr<Responder>&responder) {
    ADD_FAILURE() << "it gets nothing new";
    responder->respond(text_response(503, ""));
  });
  gone.server->stop();
  const Upstream there("p1", [](const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
    responder->respond(text_response(request.path == "/bad" ? 400 : 200, "ok"));
  });
  draining.record.is_draining = true;
  start({&gone, &there, &draining});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(post("/x", "b").status, 200);
  EXPECT_EQ(post("/bad", "b").status, 400);
  const auto has = [&](const std::string& line) {
    // A client may read its answer before it is counted.
    std::string text;
    for (int i = 0; i < 1000 && text.find("\n" + line + "\n") == std::string::npos; ++i) {
      text = client().get("/metrics")->body;
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_THAT(text, HasSubstr("\n" + line + "\n"));
  };
  has("transept_proxy_requests_total{outcome=\"answered\"} 21");
  has("transept_proxy_requests_total{outcome=\"failed\"} 0");
  has("transept_proxy_requests_total{outcome=\"given_up\"} 0");
  has("transept_proxy_retries_total 1");
  has("transept_proxy_instances{state=\"ready\"} 1");
  has("transept_proxy_instances{state=\"left_out\"} 1");
  has("transept_proxy_instances{state=\"draining\"} 1");
  has("transept_proxy_requests_in_work 0");
  pool_.set_records({});
  EXPECT_EQ(post("/x", "b").status, 503);
  has("transept_proxy_requests_total{outcome=\"failed\"} 1");
  has("transept_proxy_instances{state=\"ready\"} 0");
}

TEST_F(ProxyTest, BodiesAndRequestsInWorkAreGauges) {
  std::atomic<bool> may_end = false;
  const Upstream slow("p0", [&](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    std::thread([responder, &may_end] {
      while (!may_end) std::this_thread::sleep_for(1ms);
      responder->respond(text_response(200, "ok"));
    }).detach();
  });
  start({&slow});
  std::thread asking([&] { EXPECT_EQ(post("/x", std::string(1000, 'b')).status, 200); });
  while (service_->counts().num_in_work == 0) std::this_thread::sleep_for(1ms);
  const std::string text = client().get("/metrics")->body;
  EXPECT_THAT(text, HasSubstr("\ntransept_proxy_requests_in_work 1\n"));
  EXPECT_THAT(text, HasSubstr("\ntransept_proxy_body_bytes 1000\n"));
  may_end = true;
  asking.join();
}

TEST_F(ProxyTest, WritesALineForEachRequestButProbes) {
  const Upstream upstream("p0");
  options_.log = {.is_on = true};
  ::testing::internal::CaptureStderr();
  start({&upstream});
  EXPECT_EQ(client().get("/health")->status, 200);
  EXPECT_EQ(client().get("/metrics")->status, 200);
  post("/v1/x", "b", {{"X-Request-Id", "mine"}});
  EXPECT_TRUE(server_->wait_until_answered(std::chrono::seconds(10)));
  server_->stop();
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("info \"POST\" \"/v1/x\" 200 "));
  EXPECT_THAT(lines, HasSubstr("id=\"mine\""));
  EXPECT_EQ(std::ranges::count(lines, '\n'), 1) << lines;
}

TEST_F(ProxyTest, ManyAtOnceKeepTheirAnswers) {
  const Upstream one("p0"), two("p1"), three("p2");
  start({&one, &two, &three});
  std::vector<std::thread> threads;
  threads.reserve(32);
  for (int i = 0; i < 32; ++i) {
    threads.emplace_back([&, i] {
      HttpClient kept = client();
      for (int k = 0; k < 30; ++k) {
        const std::string body = std::to_string(i) + "." + std::to_string(k);
        const auto reply = kept.post("/x", "text/plain", body);
        ASSERT_TRUE(reply.ok()) << reply.status();
        EXPECT_EQ(reply->body, "POST /x? " + body);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(service_->counts().num_forwarded, 960);
  EXPECT_EQ(service_->counts().num_again, 0);
}

}  // namespace
}  // namespace transept::testing
