// Who gives way when too many bodies are on their way: the slowest, of whoever has most of them, and only if it is
// slow.
#include "server/incoming_requests.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "server/incoming_body_testing.h"

namespace transept {
namespace {

using testing::FakeBody;

class IncomingRequestsTest : public ::testing::Test {
 protected:
  struct Client {
    std::shared_ptr<FakeBody> body = std::make_shared<FakeBody>();
    std::unique_ptr<IncomingRequests::Place> place;
    bool is_refused() const { return body->refusal.has_value(); }
  };

  Client enter(const std::string& peer, HttpHeaders headers = {}) {
    Client client;
    client.place = incoming_.enter(peer, client.body, std::move(headers));
    return client;
  }
  void pass(double seconds) {
    clock_.advance(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  }

  FakeClock clock_;
  ServerMetrics metrics_{"m"};
  IncomingRequests incoming_{{.max_requests = 6, .max_unhurried = 4, .max_unhurried_per_peer = 3}, metrics_, clock_};
};

TEST_F(IncomingRequestsTest, TheSlowestOfAllGivesWay) {
  std::vector<Client> clients;
  for (const char* peer : {"a", "b", "c", "d"}) clients.push_back(enter(peer, {{"X-Own", peer}}));
  pass(1);
  clients[0].place->note(50'000);
  clients[1].place->note(10);
  clients[2].place->note(40'000);
  clients[3].place->note(1'000'000);
  const Client fifth = enter("e");
  EXPECT_NE(fifth.place, nullptr);
  ASSERT_TRUE(clients[1].is_refused());
  EXPECT_EQ(clients[1].body->refusal->status, 429);
  EXPECT_EQ(*find_header(clients[1].body->refusal->headers, "X-Own"), "b");
  EXPECT_NE(find_header(clients[1].body->refusal->headers, "Retry-After"), nullptr);
  EXPECT_EQ(incoming_.num_incoming(), 4);
  EXPECT_NE(metrics_.text({}, {}).find("num_requests_arriving{model_name=\"m\"} 4"), std::string::npos);
  EXPECT_NE(enter("f").place, nullptr);
  EXPECT_TRUE(clients[2].is_refused());
  EXPECT_FALSE(clients[0].is_refused());
  EXPECT_NE(metrics_.text({}, {}).find("requests_refused_total{model_name=\"m\",reason=\"arriving\"} 2"),
            std::string::npos);
}

TEST_F(IncomingRequestsTest, OfAPeerThatHasManyItsOwnGiveWay) {
  std::vector<Client> many;
  many.reserve(3);
  Client other = enter("other");  // the slowest of all
  for (int i = 0; i < 3; ++i) many.push_back(enter("many"));
  pass(1);
  for (Client& client : many) client.place->note(1000);
  many[1].place->note(999);
  const Client more = enter("many");
  EXPECT_NE(more.place, nullptr);
  EXPECT_TRUE(many[1].is_refused());
  EXPECT_FALSE(other.is_refused());
}

TEST_F(IncomingRequestsTest, OfManyThatCameAtOnceAllGiveWayThatAreTooMany) {
  std::vector<Client> burst;
  burst.reserve(6);
  for (int i = 0; i < 6; ++i) burst.push_back(enter("a"));  // none is slow yet
  EXPECT_EQ(incoming_.num_incoming(), 6);
  pass(1);
  const Client next = enter("a");
  EXPECT_NE(next.place, nullptr);
  EXPECT_EQ(incoming_.num_incoming(), 3);
  burst.clear();
  for (const char* peer : {"a", "b", "c", "d", "e", "f"}) burst.push_back(enter(peer));
  pass(1);
  EXPECT_NE(enter("g").place, nullptr);
  EXPECT_EQ(incoming_.num_incoming(), 3);
}

TEST_F(IncomingRequestsTest, NobodyGivesWayWhoIsQuickOrNew) {
  std::vector<Client> clients;
  clients.reserve(6);
  for (int i = 0; i < 6; ++i) clients.push_back(enter("a"));  // all at once: none is slow yet
  for (const Client& client : clients) EXPECT_NE(client.place, nullptr);
  EXPECT_EQ(enter("b").place, nullptr) << "no room, and none to go";
  EXPECT_FALSE(incoming_.dismiss_slowest());
  pass(0.5);
  for (Client& client : clients) client.place->note(32 << 10);  // 64 KiB a second
  EXPECT_EQ(enter("b").place, nullptr);
  for (const Client& client : clients) EXPECT_FALSE(client.is_refused());
  clients.pop_back();  // whole
  EXPECT_NE(enter("b").place, nullptr);
}

TEST_F(IncomingRequestsTest, WhereAllPlacesAreTakenWhoWaitsLongestGivesWayBeforeItsGrace) {
  std::vector<Client> clients;
  for (const char* peer : {"a", "b", "c", "d", "e", "f"}) {
    clients.push_back(enter(peer));
    pass(0.01);
  }
  clients[0].place->note(20'000);
  clients[2].place->note(1);
  Client seventh = enter("g");
  EXPECT_NE(seventh.place, nullptr);
  EXPECT_TRUE(clients[1].is_refused());
  Client last = enter("g");
  EXPECT_TRUE(clients[2].is_refused());
  EXPECT_FALSE(clients[0].is_refused()) << "it is quick";
  for (int i = 0; i < 50; ++i) {
    clients.push_back(enter("many"));
    EXPECT_NE(clients.back().place, nullptr) << i;
    pass(0.02);
    last.place->note(static_cast<size_t>(i + 1) * 4000);
  }
  EXPECT_FALSE(last.is_refused()) << "its body comes quickly";
}

TEST_F(IncomingRequestsTest, OneAddressLeavesPlacesForOthers) {
  IncomingRequests some(
      {.max_requests = 6, .max_unhurried = 4, .max_unhurried_per_peer = 3, .max_requests_per_peer = 4}, metrics_,
      clock_);
  std::vector<Client> flood;
  const auto add = [&](const std::string& peer) {
    Client client;
    client.place = some.enter(peer, client.body);
    flood.push_back(std::move(client));
    return flood.back().place != nullptr;
  };
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(add("flood"));
  EXPECT_FALSE(add("flood")) << "no more of one address, and none of it is slow yet";
  EXPECT_TRUE(add("other"));
  pass(0.02);
  EXPECT_TRUE(add("flood"));
  EXPECT_TRUE(flood[0].is_refused()) << "of its own";
  EXPECT_FALSE(flood[5].is_refused());
  EXPECT_EQ(some.num_incoming(), 5);
}

TEST_F(IncomingRequestsTest, WhatCountsIsTheSpeedOfTheLastSeconds) {
  Client stalls = enter("a"), steady = enter("b");
  size_t sent = 0;
  for (int i = 0; i < 100; ++i) {
    pass(0.1);
    steady.place->note(sent += 10'000);
    if (i < 10) stalls.place->note(static_cast<size_t>(i) << 20);
  }
  EXPECT_TRUE(incoming_.dismiss_slowest());
  EXPECT_TRUE(stalls.is_refused());
  EXPECT_FALSE(steady.is_refused());
  EXPECT_FALSE(incoming_.dismiss_slowest()) << "the other is quick";
  pass(3);
  EXPECT_TRUE(incoming_.dismiss_slowest()) << "and then stopped";
  EXPECT_FALSE(incoming_.dismiss_slowest());
  EXPECT_EQ(incoming_.num_incoming(), 0);
  stalls.place.reset();
  steady.place.reset();
  EXPECT_EQ(incoming_.num_incoming(), 0);
}

}  // namespace
}  // namespace transept
