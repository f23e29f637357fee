#include "disagg/redis_broker.h"

#include "disagg/broker_conformance_testing.h"
#include "disagg/instance_book.h"
#include "disagg/local_codec.h"
#include "disagg/redis_server_testing.h"

namespace transept::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const RedisBroker::Options kWorldOptions{.max_frames = kWorldFrames, .max_tickets = kWorldTickets, .answer = kPatient};

std::unique_ptr<RedisBroker> connected(const RedisUrl& url,
                                       const RedisBroker::Options& options = {.answer = kPatient}) {
  auto broker = RedisBroker::connect(url, options);
  EXPECT_TRUE(broker.ok()) << broker.status();
  return broker.ok() ? *std::move(broker) : nullptr;
}

struct RedisWorld {
  std::unique_ptr<Broker> broker() { return connected(server.url(), kWorldOptions); }
  void go_away() { server.stop(); }
  void come_back_empty() { server.start(); }

  RedisServer server;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Redis, BrokerConformance, RedisWorld);

const InstanceRecord kRecord = record_of("d0", 77);
const InstanceId kTaker{"e0", 5};
constexpr Duration kTtl = seconds(30);

std::string stream_of_tickets() {
  return RedisKeys("default").encode(hex_text(std::as_bytes(std::span(kModel.bytes))));
}

class RedisBrokerTest : public WithRedis {};

// ---- Who may

TEST_F(RedisBrokerTest, SaysThatNobodyIsThere) {
  TestFolder folder;
  const Status status = RedisBroker::connect({.path = folder.path() + "/none", .password = "secret"}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("redis+unix://:***@" + folder.path()), std::string::npos) << status;
  EXPECT_EQ(status.message().find("secret"), std::string::npos) << status;
  EXPECT_EQ(RedisBroker::connect({.host = "127.0.0.1", .port = 1}, {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RedisBrokerTest, AsksForThePassword) {
  const RedisServer server({"--requirepass", "right"});
  RedisUrl url = server.url();
  EXPECT_EQ(RedisBroker::connect(url, {.answer = kPatient}).status().code(), absl::StatusCode::kPermissionDenied)
      << "none";
  url.password = "wrong";
  const Status status = RedisBroker::connect(url, {.answer = kPatient}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_NE(status.message().find(url.text()), std::string::npos) << status;
  EXPECT_EQ(status.message().find("wrong"), std::string::npos) << status;
  url.password = "right";
  const auto broker = connected(url);
  ASSERT_NE(broker, nullptr);
  EXPECT_TRUE(broker->announce(kRecord, kTtl).ok());
  EXPECT_TRUE(broker->take(kTaker, kModel, milliseconds(1)).ok()) << "by a connection of its own";
}

TEST_F(RedisBrokerTest, SaysThatAPasswordIsNotWanted) {
  const RedisServer server;
  RedisUrl url = server.url();
  url.password = "secret";
  EXPECT_EQ(RedisBroker::connect(url, {.answer = kPatient}).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(RedisBrokerTest, IsAUserWithRights) {
  const RedisServer server({"--user", "ann", "on", ">pw", "~transept:fleet:*", "+@all",  //
                            "--user", "bob", "on", ">pw", "~transept:*", "+get"});
  RedisUrl url = server.url();
  url.user = "ann";
  url.password = "pw";
  const RedisBroker::Options fleet{.ns = "fleet", .answer = kPatient};
  EXPECT_TRUE(RedisBroker::connect(url, fleet).ok()) << RedisBroker::connect(url, fleet).status();
  const Status other = RedisBroker::connect(url, {.answer = kPatient}).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kPermissionDenied) << "another namespace: " << other;
  EXPECT_NE(other.message().find("redis+unix://ann:***@"), std::string::npos) << other;
  url.user = "bob";
  const Status lacks = RedisBroker::connect(url, fleet).status();
  EXPECT_EQ(lacks.code(), absl::StatusCode::kPermissionDenied) << lacks;
}

TEST_F(RedisBrokerTest, RefusesADatabaseOrNamespaceThatCannotBe) {
  const RedisServer server;
  RedisUrl url = server.url();
  url.db = 16;
  EXPECT_EQ(RedisBroker::connect(url, {.answer = kPatient}).status().code(), absl::StatusCode::kInvalidArgument);
  for (const char* ns : {"", "a:b", "a b"}) {
    const Status status = RedisBroker::connect(server.url(), {.ns = ns}).status();
    EXPECT_EQ(error_param(status), "namespace") << status;
  }
}

TEST_F(RedisBrokerTest, FleetsDoNotMeet) {
  const RedisServer server;
  RedisUrl other_db = server.url();
  other_db.db = 1;
  const auto broker = connected(server.url());
  ASSERT_TRUE(broker->announce(kRecord, kTtl).ok());
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  for (const auto& other : {connected(server.url(), {.ns = "other", .answer = kPatient}), connected(other_db)}) {
    EXPECT_TRUE(other->peers()->empty());
    EXPECT_EQ(*other->num_tickets(), 0);
    EXPECT_EQ(other->publish(kRecord.id, EcChannel::kMetadata, frame_of("x")).code(), absl::StatusCode::kNotFound);
  }
}

// ---- What stays, and what does not

TEST_F(RedisBrokerTest, LeavesNothingForEver) {
  const RedisServer server;
  const auto broker = connected(server.url());
  Taken taken;
  ASSERT_TRUE(broker->announce(kRecord, kTtl).ok());
  ASSERT_TRUE(broker->subscribe(kRecord.id, EcChannel::kMetadata, taken.taker()).ok());
  ASSERT_TRUE(broker->publish(kRecord.id, EcChannel::kMetadata, frame_of("x")).ok());
  ASSERT_TRUE(broker->publish(kRecord.id, EcChannel::kInjection, frame_of("x")).ok());
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  ASSERT_TRUE(broker->take(kTaker, kModel, Duration::zero())->has_value());
  ASSERT_TRUE(becomes([&] { return taken.count() == 1; }));
  // Between a group's making and its time there is a moment.
  EXPECT_TRUE(becomes([&] {
    const std::vector<RedisValue> keys = server.run({"KEYS", "*"}).elements;
    EXPECT_GE(keys.size(), 7u);
    return std::ranges::all_of(keys, [&](const auto& key) { return server.run({"PTTL", key.text}).integer != -1; });
  }));
  ASSERT_TRUE(broker->leave(kRecord.id).ok());
  // A mailbox is told at once that its stream is gone.
  std::this_thread::sleep_for(milliseconds(100));
  const RedisKeys keys("default");
  for (int channel = 0; channel < kNumEcChannels; ++channel) {
    EXPECT_EQ(server.run({"EXISTS", keys.frames(kRecord.id, channel)}).integer, 0) << channel;
  }
  EXPECT_EQ(server.run({"EXISTS", keys.owner(kRecord.id.name)}).integer, 0);
}

// A process that was killed between a read and its acknowledgement.
TEST_F(RedisBrokerTest, GivesAgainWhatWasNotAcknowledged) {
  const RedisServer server;
  const auto broker = connected(server.url());
  ASSERT_TRUE(broker->announce(kRecord, kTtl).ok());
  for (const char* text : {"1", "2"}) {
    ASSERT_TRUE(broker->publish(kRecord.id, EcChannel::kMetadata, frame_of(text)).ok());
  }
  const std::string stream = RedisKeys("default").frames(kRecord.id, static_cast<int>(EcChannel::kMetadata));
  server.run({"XGROUP", "CREATE", stream, "instance", "0"});
  const auto read = server.run({"XREADGROUP", "GROUP", "instance", "instance", "COUNT", "1", "STREAMS", stream, ">"});
  ASSERT_EQ(redis_stream_entries(read)->size(), 1u);
  Taken taken;
  ASSERT_TRUE(broker->subscribe(kRecord.id, EcChannel::kMetadata, taken.taker()).ok());
  ASSERT_TRUE(becomes([&] { return taken.count() >= 2; }));
  EXPECT_EQ(taken.frames(), (std::vector<std::string>{"1", "2"}));
  EXPECT_TRUE(becomes([&] { return server.run({"XLEN", stream}).integer == 0; })) << "acknowledged and deleted";
}

TEST_F(RedisBrokerTest, ComesBackWhenAllIsForgottenAndNoConnectionBreaks) {
  const RedisServer server;
  const auto broker = connected(server.url());
  Taken taken;
  ASSERT_TRUE(broker->subscribe(kRecord.id, EcChannel::kMetadata, taken.taker()).ok());
  ASSERT_TRUE(becomes([&] { return broker->publish(kRecord.id, EcChannel::kMetadata, frame_of("1")).ok(); }));
  ASSERT_TRUE(becomes([&] { return taken.count() == 1; }));
  EXPECT_FALSE(broker->take(kTaker, kModel, Duration::zero())->has_value());
  server.run({"FLUSHALL"});
  ASSERT_TRUE(becomes([&] { return broker->publish(kRecord.id, EcChannel::kMetadata, frame_of("2")).ok(); }));
  EXPECT_TRUE(becomes([&] { return taken.count() == 2; }));
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  EXPECT_TRUE(broker->take(kTaker, kModel, seconds(5))->has_value());
}

TEST_F(RedisBrokerTest, AWaitingTakerHearsThatTheServerIsGone) {
  RedisServer server;
  const auto broker = connected(server.url());
  std::thread stops([&] {
    std::this_thread::sleep_for(milliseconds(50));
    server.stop();
  });
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(broker->take(kTaker, kModel, seconds(60)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(30));
  stops.join();
}

TEST_F(RedisBrokerTest, LosesNothingWhenMemoryIsFull) {
  const RedisServer server;
  const auto broker = connected(server.url());
  ASSERT_TRUE(broker->announce(kRecord, seconds(2)).ok());
  ASSERT_TRUE(broker->publish(kRecord.id, EcChannel::kMetadata, frame_of("before")).ok());
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  EXPECT_FALSE(broker->take(kTaker, digest_of(1), Duration::zero())->has_value());
  // The group of the tickets' stream, which needs memory.
  server.run({"XGROUP", "CREATE", stream_of_tickets(), "encode", "0"});
  Taken taken;
  ASSERT_TRUE(broker->subscribe(kRecord.id, EcChannel::kMetadata, taken.taker()).ok());
  ASSERT_TRUE(becomes([&] { return taken.count() == 1; }));

  server.run({"CONFIG", "SET", "maxmemory", "1"});
  const Status full = broker->publish(kRecord.id, EcChannel::kMetadata, frame_of("x"));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_EQ(broker->offer(ticket_of("r2")).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(broker->announce(kRecord, kTtl).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RedisBroker::connect(server.url(), {.answer = kPatient}).ok()) << "others can still come";
  const auto ticket = broker->take(kTaker, kModel, seconds(5));
  ASSERT_TRUE(ticket.ok() && ticket->has_value()) << ticket.status();
  EXPECT_TRUE(broker->renew(kTaker, (*ticket)->key).ok());
  const Status done = broker->done(kTaker, (*ticket)->key);
  EXPECT_TRUE(done.ok()) << done;
  std::this_thread::sleep_for(milliseconds(2100));
  EXPECT_EQ(broker->peers()->size(), 1u) << "its record's time was renewed all the same";

  server.run({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(broker->publish(kRecord.id, EcChannel::kMetadata, frame_of("after")).ok());
  EXPECT_TRUE(broker->offer(ticket_of("r2")).ok()) << "it was not added halfway";
  EXPECT_TRUE(becomes([&] { return taken.count() == 2; }));
}

// ---- Tickets

TEST_F(RedisBrokerTest, WithdrawnTicketsMakeRoom) {
  const RedisServer server;
  const auto broker = connected(server.url(), kWorldOptions);
  for (size_t i = 0; i < kWorldTickets; ++i) ASSERT_TRUE(broker->offer(ticket_of(str_cat("r", i))).ok());
  const Status full = broker->offer(ticket_of("more"));
  EXPECT_EQ(full.message(), "4 encodes are asked for; at most 4 may be");
  ASSERT_TRUE(broker->withdraw({"r1", 2}).ok());
  EXPECT_TRUE(broker->offer(ticket_of("more")).ok());
  std::vector<std::string> taken;
  for (size_t i = 0; i < kWorldTickets; ++i) {
    taken.push_back((*broker->take(kTaker, kModel, Duration::zero()))->key.request_id);
  }
  EXPECT_EQ(taken, (std::vector<std::string>{"r0", "r2", "r3", "more"}));
}

TEST_F(RedisBrokerTest, ATicketThatAnotherHasClaimedIsNotTakenBack) {
  const RedisServer server;
  const auto broker = connected(server.url());
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  const auto ticket = broker->take(kTaker, kModel, Duration::zero());
  ASSERT_TRUE(ticket.ok() && ticket->has_value());
  const auto pending = redis_pending(server.run({"XPENDING", stream_of_tickets(), "encode", "-", "+", "1"}));
  ASSERT_TRUE(pending.ok() && pending->has_value());
  EXPECT_EQ((*pending)->consumer, "e0:5");
  server.run({"XCLAIM", stream_of_tickets(), "encode", "e1:6", "0", (*pending)->id});
  EXPECT_EQ(broker->renew(kTaker, (*ticket)->key).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(broker->done(kTaker, (*ticket)->key).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(server.run({"XLEN", stream_of_tickets()}).integer, 1) << "it is the other's";
}

TEST_F(RedisBrokerTest, ALaterTicketOfTheSameInputIsAnother) {
  const RedisServer server;
  const auto broker = connected(server.url());
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  const auto first = broker->take(kTaker, kModel, Duration::zero());
  ASSERT_TRUE(broker->withdraw({"r1", 2}).ok());
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  EXPECT_EQ(broker->done(kTaker, (*first)->key).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(broker->take(kTaker, kModel, Duration::zero())->has_value()) << "it was not ended with the first";
}

TEST_F(RedisBrokerTest, AWithdrawnTicketIsNotGivenForALaterOne) {
  const RedisServer server;
  const auto broker = connected(server.url());
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  ASSERT_TRUE(broker->withdraw({"r1", 2}).ok());
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  EXPECT_TRUE(broker->take(kTaker, kModel, Duration::zero())->has_value());
  EXPECT_FALSE(broker->take(kTaker, kModel, Duration::zero())->has_value()) << "one entry of two was over";
}

TEST_F(RedisBrokerTest, DropsWhatIsNoTicketRecordOrFrame) {
  const RedisServer server;
  const auto broker = connected(server.url());
  const RedisKeys keys("default");
  ASSERT_TRUE(broker->announce(kRecord, kTtl).ok());
  server.run({"SADD", keys.instances(), "x", "y", "a b"});
  server.run({"SET", keys.record("x"), "no record"});
  std::vector<std::byte> bytes;
  encode_instance_record(kRecord, bytes);
  server.run({"SET", keys.record("y"), bytes_text(bytes)});  // of another name
  EXPECT_EQ(*broker->peers(), std::vector<InstanceRecord>{kRecord});

  server.run({"XADD", stream_of_tickets(), "*", "ticket", "no ticket", "nonce", "1"});
  server.run({"XADD", stream_of_tickets(), "*", "other", "field"});
  ASSERT_TRUE(broker->offer(ticket_of("r1")).ok());
  EXPECT_EQ((*broker->take(kTaker, kModel, Duration::zero()))->key.request_id, "r1");
  EXPECT_EQ(server.run({"XLEN", stream_of_tickets()}).integer, 1);

  const std::string stream = keys.frames(kRecord.id, static_cast<int>(EcChannel::kMetadata));
  server.run({"XADD", stream, "*", "other", "field"});
  server.run({"XADD", stream, "*", "frame", std::string(kMaxBrokerFrameBytes + 1, 'x')});
  ASSERT_TRUE(broker->publish(kRecord.id, EcChannel::kMetadata, frame_of("good")).ok());
  Taken taken;
  ASSERT_TRUE(broker->subscribe(kRecord.id, EcChannel::kMetadata, taken.taker()).ok());
  ASSERT_TRUE(becomes([&] { return taken.count() >= 1; }));
  EXPECT_EQ(taken.frames(), std::vector<std::string>{"good"});
}

// No reply of the server may be larger than RedisReader::kMaxBytes, and 16 MiB where frames are read.
// A ticket that no taker can read is not given from one to the next.
TEST_F(RedisBrokerTest, DropsATicketThatIsTooLargeToBeRead) {
  const RedisServer server;
  const auto broker = connected(server.url(), {.answer = kPatient});
  const Ticket ticket = ticket_of("good");
  const std::string stream = RedisKeys("default").encode(hex_text(std::as_bytes(std::span(ticket.model.bytes))));
  const InstanceId taker{"e0", 1};
  EXPECT_FALSE(broker->take(taker, ticket.model, Duration::zero()).value().has_value());  // makes the group
  const std::string large(RedisReader::kMaxBytes + 1, 'x');
  for (int i = 0; i < 2; ++i) server.run({"XADD", stream, "*", "ticket", large, "nonce", "1"});
  ASSERT_TRUE(broker->offer(ticket).ok());
  std::optional<Ticket> taken;
  EXPECT_TRUE(becomes([&] {
    auto got = broker->take(taker, ticket.model, Duration::zero());
    if (got.ok() && got->has_value()) taken = **got;
    return taken.has_value();
  }));
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->key.request_id, "good");
  EXPECT_EQ(server.run({"XLEN", stream}).integer, 1) << "and what is in work stays";
  EXPECT_TRUE(broker->renew(taker, taken->key).ok());
}

TEST_F(RedisBrokerTest, DropsWhatIsTooLargeToBeRead) {
  const RedisServer server;
  const auto num_too_large = std::make_shared<std::atomic<int64_t>>(0);
  const auto broker = connected(server.url(), {.answer = kPatient, .num_too_large = num_too_large});
  ASSERT_TRUE(broker->announce(kRecord, kTtl).ok());
  const std::string stream = RedisKeys("default").frames(kRecord.id, static_cast<int>(EcChannel::kMetadata));
  const auto put = [&](size_t num_bytes) { server.run({"XADD", stream, "*", "frame", std::string(num_bytes, 'x')}); };
  for (int i = 0; i < 20; ++i) put(size_t{4} << 20);  // each could be read, and all at once not
  put(RedisReader::kMaxBytes + 1);                    // not even alone
  ASSERT_TRUE(broker->publish(kRecord.id, EcChannel::kMetadata, frame_of("first")).ok());
  put(RedisReader::kMaxBytes + 1);
  put(kMaxBrokerFrameBytes + 1);
  ASSERT_TRUE(broker->publish(kRecord.id, EcChannel::kMetadata, frame_of("second")).ok());
  Taken taken;
  ASSERT_TRUE(broker->subscribe(kRecord.id, EcChannel::kMetadata, taken.taker()).ok());
  ASSERT_TRUE(becomes([&] { return taken.count() >= 2; }));
  EXPECT_EQ(taken.frames(), (std::vector<std::string>{"first", "second"}));
  EXPECT_TRUE(becomes([&] { return server.run({"XLEN", stream}).integer == 0; }));
  EXPECT_EQ(*num_too_large, 23);
  put(RedisReader::kMaxBytes + 1);  // while it waits
  ASSERT_TRUE(broker->publish(kRecord.id, EcChannel::kMetadata, frame_of("third")).ok());
  ASSERT_TRUE(becomes([&] { return taken.count() >= 3; }));
  EXPECT_EQ(taken.frames().back(), "third");
  EXPECT_EQ(*num_too_large, 24);
}

TEST_F(RedisBrokerTest, SaysThatAKeyIsSomethingElse) {
  const RedisServer server;
  const auto broker = connected(server.url());
  server.run({"SET", RedisKeys("default").instances(), "x"});
  const Status status = broker->peers().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find("WRONGTYPE"), std::string::npos) << status;
}

TEST_F(RedisBrokerTest, CarriesTheLargestFrame) {
  const RedisServer server;
  const auto broker = connected(server.url());
  Taken taken;
  ASSERT_TRUE(broker->subscribe(kRecord.id, EcChannel::kMetadata, taken.taker()).ok());
  std::string text(kMaxBrokerFrameBytes, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31);
  ASSERT_TRUE(broker->publish(kRecord.id, EcChannel::kMetadata, frame_of(text)).ok());
  EXPECT_EQ(broker->publish(kRecord.id, EcChannel::kMetadata, frame_of(text + "x")).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(becomes([&] { return taken.count() == 1; }));
  EXPECT_EQ(taken.frames().front(), text);
}

}  // namespace
}  // namespace transept::testing
