// A server that is slow, that stands still, and that closes connections.
#include "disagg/redis_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>

#include "base/clock.h"
#include "disagg/broker_conformance_testing.h"
#include "disagg/redis_broker.h"
#include "disagg/redis_server_testing.h"
#include "disagg/slow_relay_testing.h"

namespace transept::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RedisLinkTest : public WithRedis {};

TEST_F(RedisLinkTest, TellsThatAServerStandsStill) {
  const RedisServer server;
  auto link = RedisLink::open(server.url());
  ASSERT_TRUE(link.ok()) << link.status();
  std::atomic<int> num_away{0}, num_back{0};
  (*link)->on_path([&](bool is_away) { ++(is_away ? num_away : num_back); });
  server.signal(SIGSTOP);
  const TimePoint begun = steady_now();
  const auto replies = (*link)->run({{"PING"}});
  EXPECT_EQ(replies.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(steady_now() - begun, seconds(kSanitized ? 30 : 3)) << "a call needs a second at most";
  ASSERT_TRUE(becomes([&] { return num_away == 1; }));
  EXPECT_EQ((*link)->turn().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ((*link)->connect().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(num_back, 0);
  server.signal(SIGCONT);
  ASSERT_TRUE(becomes([&] { return num_back == 1; }));
  EXPECT_TRUE((*link)->run({{"PING"}}).ok());
  EXPECT_EQ(num_away, 1);
}

// The reply that was too late is not taken for the next command's.
TEST_F(RedisLinkTest, AConnectionIsOfNoUseAfterALateReply) {
  const RedisServer server;
  const auto connection = RedisConnection::open(server.url(), steady_now() + kPatient);
  ASSERT_TRUE(connection.ok()) << connection.status();
  const RedisCommand slow = {"BLPOP", "none", "0.2"}, fast = {"PING"};
  EXPECT_EQ((*connection)->run(std::span(&slow, 1), steady_now() + milliseconds(10)).status().code(),
            absl::StatusCode::kUnavailable);
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ((*connection)->run(std::span(&fast, 1), steady_now() + kPatient).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(RedisLinkTest, ConnectsAgainWhenTheServerEndsTheConnection) {
  const RedisServer server;
  auto link = RedisLink::open(server.url(), kPatient);
  ASSERT_TRUE(link.ok()) << link.status();
  std::atomic<int> num_back{0};
  (*link)->on_path([&](bool is_away) { num_back += is_away ? 0 : 1; });
  server.run({"CLIENT", "KILL", "TYPE", "normal"});
  ASSERT_TRUE(becomes([&] { return num_back == 1; }));
  EXPECT_TRUE((*link)->run({{"PING"}}).ok());
}

size_t num_connections(const RedisServer& server) {
  const std::string list = server.run({"CLIENT", "LIST", "TYPE", "normal"}).text;
  return static_cast<size_t>(std::ranges::count(list, '\n')) - 1;  // and the one that asks
}

TEST_F(RedisLinkTest, CallsTakeTurns) {
  const RedisServer server;
  auto link = RedisLink::open(server.url());
  ASSERT_TRUE(link.ok()) << link.status();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE((*link)->run({{"PING"}}).ok());
  EXPECT_EQ(num_connections(server), 1u) << "calls that do not wait for each other need no other";
  {
    std::vector<StatusOr<RedisLink::Turn>> turns;
    for (size_t i = 0; i < RedisLink::kMaxConnections; ++i) {
      turns.push_back((*link)->turn());
      ASSERT_TRUE(turns.back().ok()) << turns.back().status();
    }
    for (auto& turn : turns) EXPECT_TRUE(turn->run({{"PING"}}).ok());
    EXPECT_EQ(num_connections(server), RedisLink::kMaxConnections);
    std::thread other([&] { EXPECT_EQ((*link)->turn().status().code(), absl::StatusCode::kUnavailable); });
    other.join();
    turns.pop_back();
    EXPECT_TRUE((*link)->run({{"PING"}}).ok());
  }
  EXPECT_TRUE((*link)->turn().ok());
}

TEST_F(RedisLinkTest, AServerThatTakesNoFurtherConnectionIsNotAway) {
  const RedisServer server;
  auto link = RedisLink::open(server.url());
  ASSERT_TRUE(link.ok()) << link.status();
  std::atomic<int> num_away{0};
  (*link)->on_path([&](bool is_away) { num_away += is_away ? 1 : 0; });
  ASSERT_TRUE((*link)->run({{"CONFIG", "SET", "maxclients", "1"}}).ok());
  std::optional<StatusOr<RedisLink::Turn>> turn((*link)->turn());
  ASSERT_TRUE(turn->ok());
  std::thread other([&] { EXPECT_TRUE((*link)->run({{"PING"}}).ok()); });
  std::this_thread::sleep_for(milliseconds(100));
  turn.reset();
  other.join();
  EXPECT_EQ(num_away, 0);
}

TEST_F(RedisLinkTest, ABrokerWorksWithADistantServer) {
  const RedisServer server;
  const SlowRelay relay(server.path(), milliseconds(40));
  const RedisUrl url{.host = "127.0.0.1", .port = relay.port()};
  const auto connected = RedisBroker::connect(url, {.max_tickets = 2, .answer = kPatient});
  ASSERT_TRUE(connected.ok()) << connected.status();
  RedisBroker& broker = **connected;
  std::atomic<int> num_away{0};
  broker.on_path([&](bool is_away) { num_away += is_away ? 1 : 0; });
  const InstanceRecord record = record_of("d0", 77);
  const InstanceId taker{"e0", 5};
  Taken taken;
  EXPECT_TRUE(broker.announce(record, seconds(30)).ok());
  EXPECT_TRUE(broker.subscribe(record.id, EcChannel::kMetadata, taken.taker()).ok());
  EXPECT_TRUE(broker.publish(record.id, EcChannel::kMetadata, frame_of("x")).ok());
  EXPECT_EQ(broker.peers().value_or(std::vector<InstanceRecord>()).size(), 1u);
  EXPECT_TRUE(broker.offer(ticket_of("r1")).ok());
  EXPECT_TRUE(broker.offer(ticket_of("r2")).ok());
  EXPECT_TRUE(broker.withdraw({"r2", 2}).ok());
  EXPECT_TRUE(broker.offer(ticket_of("r3")).ok()) << "which drops the one that is over";
  const auto ticket = broker.take(taker, kModel, seconds(10));
  ASSERT_TRUE(ticket.ok() && ticket->has_value()) << ticket.status();
  EXPECT_TRUE(broker.renew(taker, (*ticket)->key).ok());
  EXPECT_TRUE(broker.done(taker, (*ticket)->key).ok());
  EXPECT_TRUE(becomes([&] { return taken.count() == 1; }));
  EXPECT_TRUE(broker.leave(record.id).ok());
  EXPECT_EQ(num_away, 0);
}

TEST_F(RedisLinkTest, TicketsForgetTakersThatHaveEnded) {
  const RedisServer server;
  const auto link = RedisLink::open(server.url(), kPatient);
  ASSERT_TRUE(link.ok()) << link.status();
  const RedisKeys keys("default");
  const std::string stream = keys.encode(hex_text(std::as_bytes(std::span(kModel.bytes))));
  const auto takers = [&] {
    std::set<std::string> names;
    const auto listed = redis_consumers(server.run({"XINFO", "CONSUMERS", stream, "encode"}));
    EXPECT_TRUE(listed.ok()) << listed.status();
    for (const RedisConsumer& taker : listed.value_or(std::vector<RedisConsumer>())) names.insert(taker.name);
    return names;
  };
  const InstanceId first{"e0", 1}, second{"e1", 2}, third{"e2", 3};
  {
    RedisTickets tickets(**link, keys, 4);
    for (const char* name : {"r1", "r2"}) ASSERT_TRUE(tickets.offer(ticket_of(name)).ok());
    ASSERT_TRUE(tickets.take(first, kModel, Duration::zero())->has_value());
    const auto ticket = tickets.take(second, kModel, Duration::zero());
    ASSERT_TRUE(ticket.ok() && ticket->has_value()) << ticket.status();
    ASSERT_TRUE(tickets.done(second, (*ticket)->key).ok());
  }
  RedisTickets(**link, keys, 4).take(third, kModel, Duration::zero()).status().IgnoreError();
  const auto an_hour_is_not_over = takers();
  EXPECT_TRUE(an_hour_is_not_over.contains("e0:1") && an_hour_is_not_over.contains("e1:2"));
  std::this_thread::sleep_for(milliseconds(20));
  RedisTickets tickets(**link, keys, 4, milliseconds(10));
  tickets.take(third, kModel, Duration::zero()).status().IgnoreError();
  EXPECT_TRUE(takers().contains("e0:1")) << "it has a ticket";
  EXPECT_FALSE(takers().contains("e1:2"));
}

}  // namespace
}  // namespace transept::testing
