#include "proxy/held_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/check.h"
#include "base/content_digest_testing.h"
#include "disagg/inproc_broker.h"

namespace transept {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Result = HeldInputs::Result;

const ModelFingerprint kModel = testing::digest_of(8);

class HeldInputsTest : public ::testing::Test {
 protected:
  HeldInputsTest() {
    options_.self = {"proxy", 77};
    options_.url = "http://127.0.0.1:1";
    options_.look = milliseconds(5);
    InstanceRecord encoder;
    encoder.id = {"e0", 1};
    encoder.role = InstanceRole::kEncode;
    encoder.model = kModel;
    CHECK(encoders_.announce(encoder, seconds(100)).ok(), "the hub takes records");
  }
  void start() { held_ = std::make_unique<HeldInputs>(options_, std::make_shared<InprocBroker>(hub_)); }

  static std::vector<HeldPrompt> prompts_of(const std::vector<std::string>& texts) {
    std::vector<HeldPrompt> prompts;
    for (const std::string& text : texts) {
      Json body = Json::object();
      body.set("prompt", text);
      prompts.push_back({std::move(body), 5});
    }
    return prompts;
  }
  std::future<Result> hold(const std::vector<std::string>& texts) {
    return std::async(std::launch::async, [this, prompts = prompts_of(texts)] {
      return held_->hold(prompts, {{"p0", 22}, kModel}, [this] { return check_ ? check_() : ok_status(); });
    });
  }
  std::optional<Ticket> take(milliseconds wait = seconds(10)) {
    return encoders_.take({"e0", 1}, queue_of(kModel, options_.secret.get()), wait).value();
  }

  HttpResponse call(std::string method, const EcInput& input, std::string body = {}) {
    HttpRequest request{.method = std::move(method), .path = inputs_path(input), .body = std::move(body)};
    request.peer_is_loopback = true;
    if (options_.secret != nullptr) {
      request.headers.emplace_back(kInstanceCodeHeader,
                                   instance_code(*options_.secret, request.method, request.path, request.body));
    }
    return held_->answer(request);
  }
  static InjectedInput injected_of(const Ticket& ticket, int32_t num_positions) {
    return {input_of(ticket.key), testing::digest_of(3), num_positions, {0, num_positions, {}}};
  }
  int done(const Ticket& ticket, int32_t num_positions) {
    return call("POST", input_of(ticket.key), injection_body(injected_of(ticket, num_positions))).status;
  }

  HeldInputs::Options options_;
  std::function<Status()> check_;
  std::shared_ptr<InprocHub> hub_ = std::make_shared<InprocHub>(InprocHub::Options());
  InprocBroker encoders_{hub_};
  std::unique_ptr<HeldInputs> held_;
};

TEST_F(HeldInputsTest, HoldsUntilAllAreThere) {
  start();
  std::future<Result> held = hold({"one", "two"});
  const std::optional<Ticket> first = take(), second = take();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_TRUE(is_of_prompt(*first));
  EXPECT_EQ(first->num_positions, 5);
  EXPECT_EQ(first->consumer, (InstanceId{"p0", 22}));
  EXPECT_EQ(first->asker_url, options_.url);
  EXPECT_TRUE(first->key.request_id.starts_with("proxy.77."));
  EXPECT_NE(first->key.request_id, second->key.request_id) << "each prompt is a request of the decode instance";
  EXPECT_EQ(call("GET", input_of(first->key)).body, R"({"prompt": "one", "consumer": "p0"})");
  EXPECT_EQ(first->num_bytes, call("GET", input_of(first->key)).body.size());

  EXPECT_EQ(done(*second, 7), 200);
  EXPECT_EQ(held.wait_for(milliseconds(50)), std::future_status::timeout);
  EXPECT_EQ(done(*second, 7), 404) << "it was told";
  EXPECT_EQ(done(*first, 6), 200);
  EXPECT_EQ(held.get().injected, (InjectedInputs{injected_of(*first, 6), injected_of(*second, 7)}));
  EXPECT_EQ(held_->num_held(), 0u);
  EXPECT_EQ(call("GET", input_of(first->key)).status, 404);
}

TEST_F(HeldInputsTest, ARefusalEndsAll) {
  start();
  std::future<Result> held = hold({"one", "two", "three"});
  const Ticket ticket = take().value();
  EXPECT_EQ(call("POST", input_of(ticket.key), refusal_body(invalid_argument("no such id"))).status, 200);
  EXPECT_EQ(held.get().status, invalid_argument("no such id"));
  EXPECT_EQ(held_->num_held(), 0u);
  for (int i = 0; i < 1000 && encoders_.num_tickets().value() > 0; ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(encoders_.num_tickets().value(), 0) << "the others are withdrawn";
}

TEST_F(HeldInputsTest, EndsWhenNobodyWantsItAnyMore) {
  std::atomic<bool> is_over = false;
  check_ = [&] { return is_over ? absl::CancelledError("the client has gone") : ok_status(); };
  start();
  std::future<Result> held = hold({"one"});
  const Ticket ticket = take().value();
  is_over = true;
  EXPECT_EQ(held.get().status, absl::CancelledError("the client has gone"));
  for (int i = 0; i < 1000 && encoders_.renew({"e0", 1}, ticket.key).ok(); ++i)
    std::this_thread::sleep_for(milliseconds(5));
  EXPECT_TRUE(absl::IsNotFound(encoders_.renew({"e0", 1}, ticket.key))) << "who has taken it hears of it";
}

TEST_F(HeldInputsTest, WithoutAnEncodeInstanceItEndsSoon) {
  options_.offers.wait_for_encoders = milliseconds(50);
  options_.offers.look_for_encoders = milliseconds(5);
  options_.offers.offer_again = milliseconds(5);
  ASSERT_EQ(encoders_.leave({"e0", 1}), ok_status());
  start();
  const Result held = hold({"one"}).get();
  EXPECT_TRUE(absl::IsUnavailable(held.status));
  EXPECT_THAT(error_message(held.status), HasSubstr("no encode instance"));
}

TEST_F(HeldInputsTest, EndsWhenItTakesTooLong) {
  options_.max_wait = milliseconds(30);
  start();
  EXPECT_TRUE(absl::IsDeadlineExceeded(hold({"one"}).get().status));
}

// As when the decode instance has no room for more: those that have come would wait for the others for ever.
TEST_F(HeldInputsTest, WhatHasComeIsNotHeldForWhatDoesNot) {
  options_.max_stall = milliseconds(50);
  start();
  std::future<Result> held = hold({"one", "two"});
  EXPECT_EQ(held.wait_for(milliseconds(200)), std::future_status::timeout) << "none has come";
  const Ticket first = take().value();
  EXPECT_EQ(done(first, 6), 200);
  const Result result = held.get();
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status));
  EXPECT_EQ(result.injected, (InjectedInputs{injected_of(first, 6), std::nullopt}));
}

TEST_F(HeldInputsTest, InstancesAloneAreAnswered) {
  options_.secret = std::make_shared<const EcSecret>(std::as_bytes(std::span("0123456789abcdef", 16)));
  start();
  std::future<Result> held = hold({"one"});
  const Ticket ticket = take().value();
  EXPECT_EQ(call("GET", input_of(ticket.key)).status, 200);
  EXPECT_EQ(call("GET", {"other", 0}).status, 404);
  EXPECT_EQ(call("POST", input_of(ticket.key), "{}").status, 400);
  InjectedInput other = injected_of(ticket, 3);
  other.input.input_id = 9;
  EXPECT_EQ(call("POST", input_of(ticket.key), injection_body(other)).status, 400);
  HttpRequest stranger{.method = "GET", .path = "/v1/inputs/guessed/0", .peer_is_loopback = true};
  EXPECT_EQ(held_->answer(stranger).status, 401);
  EXPECT_EQ(held.wait_for(milliseconds(20)), std::future_status::timeout);
  // An encode instance of another secret would come again and again.
  stranger.path = inputs_path(input_of(ticket.key));
  EXPECT_EQ(held_->answer(stranger).status, 401);
  EXPECT_TRUE(absl::IsPermissionDenied(held.get().status));
}

TEST_F(HeldInputsTest, ProvesItselfToDecodeInstances) {
  options_.secret = std::make_shared<const EcSecret>(std::as_bytes(std::span("0123456789abcdef", 16)));
  start();
  HttpRequest request{.method = "POST", .path = "/v1/completions", .query = "a=b", .body = "{}"};
  request.headers = held_->proof("POST", "/v1/completions?a=b", "{}");
  EXPECT_TRUE(is_from_instance(options_.secret.get(), request));
  request.body = "{ }";
  EXPECT_FALSE(is_from_instance(options_.secret.get(), request));
}

TEST_F(HeldInputsTest, ManyAtOnceGetTheirOwn) {
  start();
  std::atomic<bool> is_over = false;
  std::vector<std::thread> encoders;
  encoders.reserve(3);
  for (int i = 0; i < 3; ++i) {
    encoders.emplace_back([&] {
      InprocBroker broker(hub_);
      while (!is_over) {
        const auto ticket = broker.take({"e0", 1}, kModel, milliseconds(20)).value();
        if (!ticket.has_value()) continue;
        const std::string body = call("GET", input_of(ticket->key)).body;
        if (body.empty()) continue;
        const std::string number = Json::parse(body)->find("prompt")->as_string();
        done(*ticket, std::stoi(number) + 1);
        (void)broker.done({"e0", 1}, ticket->key);
      }
    });
  }
  std::vector<std::thread> clients;
  clients.reserve(8);
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k) {
        const int number = 100 * i + k;
        const Result held = hold({std::to_string(number), std::to_string(number + 10000)}).get();
        ASSERT_TRUE(held.status.ok()) << held.status;
        EXPECT_EQ(held.injected[0]->num_positions, number + 1);
        EXPECT_EQ(held.injected[1]->num_positions, number + 10001);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  is_over = true;
  for (std::thread& encoder : encoders) encoder.join();
  EXPECT_EQ(held_->num_held(), 0u);
}

}  // namespace
}  // namespace transept
