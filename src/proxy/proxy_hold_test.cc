// Requests that are held until their inputs are encoded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "disagg/inproc_broker.h"
#include "proxy/proxy_testing.h"

namespace transept::testing {
namespace {

// With an encode instance, as far as a proxy sees it.
class HoldingProxyTest : public ProxyTest {
 protected:
  HoldingProxyTest() { options_.hold = ProxyService::Hold::kAlways; }
  ~HoldingProxyTest() override {
    is_over_ = true;
    if (encoder_.joinable()) encoder_.join();
    if (server_ != nullptr) server_->stop();
    service_.reset();
  }

  void start_holding(const std::vector<const Upstream*>& upstreams) {
    start(upstreams);  // those have room
    held_options_.self = {"proxy", 7};
    held_options_.url = "http://" + server_->address();
    held_options_.look = 5ms;
    held_ = std::make_unique<HeldInputs>(held_options_, std::make_shared<InprocBroker>(hub_));
    service_->set_held(held_.get());
    InstanceRecord record;
    record.id = {"e0", 1};
    record.role = InstanceRole::kEncode;
    ASSERT_TRUE(broker_.announce(record, std::chrono::minutes(5)).ok());
    encoder_ = std::thread([this] { run_encoder(); });
  }
  // Tickets are taken; what is said of them is what on_ticket_ says.
  void run_encoder() {
    InstanceClient client({});
    while (!is_over_) {
      const auto ticket = broker_.take({"e0", 1}, {}, 10ms).value();
      if (!ticket.has_value()) continue;
      const auto fetched = client.fetch(*ticket);
      if (fetched.ok()) {
        ++num_fetched_;
        EXPECT_FALSE(ticket->trace.request_id.empty()) << "logs say for whom";
        on_ticket_(client, *ticket);
      }
      (void)broker_.done({"e0", 1}, ticket->key);
    }
  }
  // A client can have its answer before its body is given back.
  void wait_for_no_bodies() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (service_->counts().num_body_bytes > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(service_->counts().num_body_bytes, 0);
  }
  static void inject(InstanceClient& client, const Ticket& ticket) {
    EXPECT_EQ(client.report(ticket, {input_of(ticket.key), {}, 3, {0, 3, {}}}), ok_status());
  }

  std::shared_ptr<InprocHub> hub_ = std::make_shared<InprocHub>(InprocHub::Options());
  InprocBroker broker_{hub_};
  HeldInputs::Options held_options_;
  std::unique_ptr<HeldInputs> held_;
  std::function<void(InstanceClient&, const Ticket&)> on_ticket_ = inject;
  std::atomic<bool> is_over_ = false;
  std::atomic<int> num_fetched_ = 0;
  std::thread encoder_;
};

constexpr std::string_view kTwo = R"({"prompt": ["a", "b"]})";

// Keeps what comes to it, and answers as a server does that believes the proxy, or none.
struct Believing {
  explicit Believing(std::string name, bool believes = true)
      : upstream(std::move(name), [this, believes](HttpRequest request, const std::shared_ptr<Responder>& responder) {
          const bool is_held = request.body.find("encoded_inputs") != std::string::npos;
          const MutexLock lock(mutex);
          if (request.path == "/v1/models") {
            ++num_looks;
            return responder->respond({.status = lets_in ? 200 : 401, .body = "{}"});
          }
          seen.push_back(std::move(request));
          if (is_held && !believes) {
            return responder->respond({.status = 400, .headers = {{std::string(kInstanceCodeHeader), "refused"}}});
          }
          responder->respond({.body = "{}"});
        }) {}
  std::vector<HttpRequest> requests() const {
    const MutexLock lock(mutex);
    return seen;
  }

  mutable Mutex mutex;
  std::vector<HttpRequest> seen;
  std::atomic<int> num_looks = 0;
  std::atomic<bool> lets_in = true;
  Upstream upstream;
};

TEST_F(HoldingProxyTest, ForwardsWhenTheInputsAreThere) {
  Believing decoder("p0");
  start_holding({&decoder.upstream});
  EXPECT_EQ(post("/v1/completions", kTwo, {{std::string(kInstanceCodeHeader), "forged"}}).status, 200);
  ASSERT_EQ(decoder.requests().size(), 1u);
  const HttpRequest held = decoder.requests()[0];
  const auto inputs = read_encoded_inputs(*Json::parse(held.body)->find("encoded_inputs"), 2);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ((*inputs)[1]->num_positions, 3);
  EXPECT_EQ(*held.header(kInstanceCodeHeader), "none") << "the client's is not passed on";
  EXPECT_EQ(num_fetched_, 2);
  // What is no route with prompts, is not held.
  EXPECT_EQ(post("/tokenize", kTwo).status, 200);
  EXPECT_EQ(post("/v1/completions", "{\"prompt\": 3}").status, 200);
  EXPECT_EQ(decoder.requests()[1].body, kTwo);
  EXPECT_EQ(service_->counts().num_held, 1);
  EXPECT_NE(client().get("/metrics")->body.find("transept_proxy_holds_total{outcome=\"held\"} 1\n"), std::string::npos);
  EXPECT_EQ(decoder.num_looks, 1) << "who was let in a moment ago is let in";
}

TEST_F(HoldingProxyTest, ARefusedInputIsTheDecodeInstancesToAnswer) {
  on_ticket_ = [](InstanceClient& client, const Ticket& ticket) {
    // The second input is asked for no longer once the first was refused.
    const Status refused = client.refuse(ticket, invalid_argument("no such id"));
    EXPECT_TRUE(refused.ok() || refused.code() == absl::StatusCode::kNotFound) << refused;
  };
  Believing decoder("p0");
  start_holding({&decoder.upstream});
  EXPECT_EQ(post("/v1/completions", kTwo).status, 200);
  ASSERT_EQ(decoder.requests().size(), 1u);
  EXPECT_EQ(decoder.requests()[0].body, kTwo) << "as it came";
  EXPECT_EQ(decoder.requests()[0].header(kInstanceCodeHeader), nullptr);
  EXPECT_EQ(service_->counts().num_let_go, 1);
}

TEST_F(HoldingProxyTest, WhoIsNotBelievedSendsTheRequestAsItCame) {
  Believing decoder("p0", false);
  start_holding({&decoder.upstream});
  EXPECT_EQ(post("/v1/completions", kTwo).status, 200);
  ASSERT_EQ(decoder.requests().size(), 2u);
  EXPECT_EQ(decoder.requests()[1].body, kTwo);
  EXPECT_EQ(post("/v1/completions", kTwo).status, 200);
  EXPECT_EQ(decoder.requests().size(), 3u) << "it is not held for a while";
  EXPECT_EQ(num_fetched_, 2);
}

TEST_F(HoldingProxyTest, NothingIsEncodedForWhoIsNotLetIn) {
  Believing decoder("p0");
  decoder.lets_in = false;
  start_holding({&decoder.upstream});
  EXPECT_EQ(post("/v1/completions", kTwo, {{"Authorization", "Bearer wrong"}}).status, 200);
  EXPECT_EQ(decoder.requests()[0].body, kTwo);
  EXPECT_EQ(num_fetched_, 0);
  decoder.lets_in = true;
  EXPECT_EQ(post("/v1/completions", kTwo, {{"Authorization", "Bearer right"}}).status, 200);
  EXPECT_EQ(num_fetched_, 2);
  decoder.lets_in = false;
  EXPECT_EQ(post("/v1/completions", kTwo, {{"Authorization", "Bearer wrong"}}).status, 200);
  EXPECT_EQ(num_fetched_, 2) << "each is asked for by itself";
}

TEST_F(HoldingProxyTest, MediaOverTheLimitGoNowhere) {
  options_.max_body_bytes = 1000;
  Believing decoder("p0");
  start_holding({&decoder.upstream});
  const std::string body =
      R"({"prompt": {"multi_modal_data": {"audio": {"base64": ")" + std::string(2000, 'A') + "\"}}}}";
  EXPECT_EQ(post("/v1/completions", body).status, 413);
  EXPECT_EQ(num_fetched_, 0);
  EXPECT_TRUE(decoder.requests().empty());
}

// Three times the body while it is held: as it came, as it was split, and as it is fetched.
TEST_F(HoldingProxyTest, WhatIsHeldCountsAgainstTheBudget) {
  options_.max_bodies_bytes = 1000;
  Believing decoder("p0");
  start_holding({&decoder.upstream});
  EXPECT_EQ(post("/v1/completions", R"({"prompt": ")" + std::string(600, 'x') + "\"}").status, 200);
  EXPECT_EQ(num_fetched_, 0) << "there is no room to hold it";
  wait_for_no_bodies();
  EXPECT_EQ(post("/v1/completions", R"({"prompt": ")" + std::string(300, 'x') + "\"}").status, 200);
  EXPECT_EQ(num_fetched_, 1);
  wait_for_no_bodies();
  EXPECT_EQ(post("/v1/completions", R"({"prompt": ")" + std::string(1001, 'x') + "\"}").status, 429);
}

TEST_F(HoldingProxyTest, ADecodeInstanceThatGoesIsReplaced) {
  Believing first("p0"), second("p1");
  std::atomic<bool> has_gone = false;
  on_ticket_ = [&](InstanceClient& client, const Ticket& ticket) {
    if (has_gone.exchange(true)) return inject(client, ticket);
    // The one that it was bound to ends before its rows are there.
    pool_.set_records(std::span(ticket.consumer.name == "p0" ? &second.upstream.record : &first.upstream.record, 1));
  };
  start_holding({&first.upstream, &second.upstream});
  EXPECT_EQ(post("/v1/completions", R"({"prompt": "a"})").status, 200);
  EXPECT_EQ(first.requests().size() + second.requests().size(), 1u);
  EXPECT_EQ(num_fetched_, 2) << "for each of them";
  EXPECT_EQ(service_->counts().num_again, 1);
  EXPECT_EQ(service_->counts().num_held, 1);
}

TEST_F(HoldingProxyTest, AClientThatGoesIsHeldNoLonger) {
  on_ticket_ = [](InstanceClient&, const Ticket&) {};
  Believing decoder("p0");
  start_holding({&decoder.upstream});
  {
    HttpClient impatient("127.0.0.1", server_->port(), {.timeout = 200ms});
    EXPECT_TRUE(absl::IsDeadlineExceeded(impatient.post("/v1/completions", "application/json", kTwo).status()));
  }
  for (int i = 0; i < 500 && held_->num_held() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(held_->num_held(), 0u);
  EXPECT_TRUE(decoder.requests().empty());
  EXPECT_EQ(pool_.num_ready(std::chrono::steady_clock::now()), 1u) << "it was not the instance's fault";
}

TEST_F(HoldingProxyTest, WhatHasComeGoesWithTheRequest) {
  held_options_.max_stall = 50ms;
  std::atomic<bool> is_first = true;
  on_ticket_ = [&](InstanceClient& client, const Ticket& ticket) {
    if (is_first.exchange(false)) inject(client, ticket);
  };
  Believing decoder("p0");
  start_holding({&decoder.upstream});
  EXPECT_EQ(post("/v1/completions", kTwo).status, 200);
  ASSERT_EQ(decoder.requests().size(), 1u);
  const auto inputs = read_encoded_inputs(*Json::parse(decoder.requests()[0].body)->find("encoded_inputs"), 2);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_TRUE((*inputs)[0].has_value());
  EXPECT_FALSE((*inputs)[1].has_value());
}

TEST_F(HoldingProxyTest, ADecodeInstanceWithoutRoomIsAskedToAskItself) {
  Believing decoder("p0");
  decoder.upstream.record.load.num_free_slots = 63;
  start_holding({&decoder.upstream});
  EXPECT_EQ(post("/v1/completions", kTwo).status, 200);
  EXPECT_EQ(decoder.requests()[0].body, kTwo);
  EXPECT_EQ(num_fetched_, 0);
  EXPECT_EQ(post("/v1/completions", R"({"prompt": "a"})").status, 200);
  EXPECT_EQ(num_fetched_, 1);
  EXPECT_EQ(post("/v1/completions", R"({"prompt": "b"})").status, 200);
  EXPECT_EQ(num_fetched_, 2) << "its room is free again";
}

TEST_F(HoldingProxyTest, OnePromptIsHeldOnlyIfAllAre) {
  options_.hold = ProxyService::Hold::kSeveral;
  Believing decoder("p0");
  start_holding({&decoder.upstream});
  EXPECT_EQ(post("/v1/completions", R"({"prompt": ["a"]})").status, 200);
  EXPECT_EQ(num_fetched_, 0);
  EXPECT_EQ(post("/v1/completions", kTwo).status, 200);
  EXPECT_EQ(num_fetched_, 2);
}

}  // namespace
}  // namespace transept::testing
