#include "disagg/redis_bulk.h"

#include "disagg/bulk_conformance_testing.h"
#include "disagg/redis_server_testing.h"

namespace transept::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<RedisBulk> created(const RedisUrl& url, const std::string& name, RedisBulk::Options options = {}) {
  options.self = {name, 1};
  if (options.answer == RedisBulk::Options().answer) options.answer = kPatient;
  auto bulk = RedisBulk::create(url, options, std::make_shared<FrameWriter>(1, nullptr));
  EXPECT_TRUE(bulk.ok()) << bulk.status();
  return bulk.ok() ? *std::move(bulk) : nullptr;
}

struct RedisWorld {
  std::unique_ptr<BulkTransport> transport(const std::string& name) { return created(server.url(), name); }
  RedisServer server;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Redis, BulkConformance, RedisWorld);

class RedisBulkTest : public WithRedis {
 protected:
  static size_t num_keys(const RedisServer& server, const std::string& pattern) {
    return server.run({"KEYS", pattern}).elements.size();
  }
};

TEST_F(RedisBulkTest, LeavesNothingInTheServer) {
  const RedisServer server;
  TakenRows taken;
  {
    const auto receiver = created(server.url(), "d0");
    receiver->receive(taken.taker());
    const auto sender = created(server.url(), "e0");
    SendCount count;
    sender->send(receiver->address(), count.sending("r0", rows_of(3 * kBulkChunkBytes, 1)));
    ASSERT_TRUE(becomes([&] { return taken.bytes("r0").size() == 3 * kBulkChunkBytes; }));
    EXPECT_EQ(num_keys(server, "transept:default:ec:*"), 0U);
    EXPECT_EQ(num_keys(server, "*"), 1U) << "the stream";
    EXPECT_EQ(server.run({"TYPE", "transept:default:frames:d0:1:3"}).text, "stream");
    EXPECT_GT(server.run({"PTTL", "transept:default:frames:d0:1:3"}).integer, 0);
  }
  EXPECT_EQ(num_keys(server, "*"), 0U);
}

TEST_F(RedisBulkTest, BoundsWhatWaits) {
  const RedisServer server;
  TakenRows taken;
  taken.hold(true);
  const auto receiver = created(server.url(), "d0");
  receiver->receive(taken.taker());
  const auto sender = created(server.url(), "e0");
  SendCount count;
  for (int i = 0; i < 3; ++i) {
    sender->send(receiver->address(), count.sending(str_cat("r", i), rows_of(8 * kBulkChunkBytes, i)));
  }
  // One was taken out, and is held.
  ASSERT_TRUE(becomes([&] { return count.num_progress == static_cast<int>(RedisBulk::kMaxWaiting) + 1; }));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(count.num_progress, static_cast<int>(RedisBulk::kMaxWaiting) + 1);
  EXPECT_EQ(num_keys(server, "transept:default:ec:*"), RedisBulk::kMaxWaiting);
  EXPECT_GT(server.run({"PTTL", "transept:default:ec:r0:0:1:262144"}).integer, 0);
  taken.hold(false);
  EXPECT_TRUE(becomes([&] { return count.num_done == 3; }));
  EXPECT_TRUE(becomes([&] { return taken.bytes("r2").size() == 8 * kBulkChunkBytes; }));
  EXPECT_EQ(taken.num_disordered(), 0);
}

TEST_F(RedisBulkTest, FailsOutputsForAnAddressThatIsNone) {
  const RedisServer server;
  const auto sender = created(server.url(), "e0");
  SendCount count;
  const std::vector<std::string> addresses = {"tcp://127.0.0.1:1", "redis:",      "redis:d0",   "redis:d0:x",
                                              "redis::1",          "redis:d 0:1", "redis:d0:-1"};
  for (const std::string& address : addresses) sender->send(address, count.sending("r" + address, rows_of(1, 1)));
  EXPECT_TRUE(becomes([&] { return count.num_failed == static_cast<int>(addresses.size()); }));
  EXPECT_EQ(num_keys(server, "*"), 0U);
}

// A receiver's answer is the handshake's matter; a server without memory fails the output, by name, and takes the next
// one when it has some.
TEST_F(RedisBulkTest, FailsOutputsWhenTheServersMemoryIsFull) {
  const RedisServer server;
  TakenRows taken;
  const auto receiver = created(server.url(), "d0");
  receiver->receive(taken.taker());
  const auto sender = created(server.url(), "e0", {.full = milliseconds(300)});
  ASSERT_TRUE(becomes([&] { return num_keys(server, "*") == 1; }));
  server.run({"CONFIG", "SET", "maxmemory", "1"});
  SendCount count;
  Status why;
  BulkTransport::Sending sending = count.sending("r0", rows_of(1000, 1));
  sending.done = [&](const Status& status) {
    why = status;
    ++count.num_failed;
  };
  sender->send(receiver->address(), std::move(sending));
  ASSERT_TRUE(becomes([&] { return count.num_failed == 1; }));
  EXPECT_EQ(why.code(), absl::StatusCode::kResourceExhausted) << why;
  EXPECT_NE(why.message().find("maxmemory"), std::string::npos) << why;

  // One that waits is sent when there is memory.
  SendCount next;
  const auto patient = created(server.url(), "e1");
  patient->send(receiver->address(), next.sending("r1", rows_of(1000, 1)));
  std::this_thread::sleep_for(milliseconds(250));
  EXPECT_EQ(next.num_progress, 0);
  EXPECT_EQ(num_keys(server, "transept:default:ec:*"), 0U);
  server.run({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(becomes([&] { return taken.bytes("r1").size() == 1000; }));
  EXPECT_TRUE(becomes([&] { return next.num_done == 1; }));
}

TEST_F(RedisBulkTest, GoesOnAfterARestartThatLosesEverything) {
  RedisServer server;
  TakenRows taken;
  const auto receiver = created(server.url(), "d0");
  receiver->receive(taken.taker());
  const auto sender = created(server.url(), "e0");
  SendCount count;
  sender->send(receiver->address(), count.sending("r0", rows_of(1000, 1)));
  ASSERT_TRUE(becomes([&] { return taken.bytes("r0").size() == 1000; }));
  server.stop();
  sender->send(receiver->address(), count.sending("r1", rows_of(1000, 2)));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(count.num_done, 1);
  server.start();
  EXPECT_TRUE(becomes([&] { return taken.bytes("r1").size() == 1000; }));
  EXPECT_TRUE(becomes([&] { return count.num_done == 2; }));
  EXPECT_EQ(count.num_failed, 0);
}

// Who can write to the server can put anything there.
TEST_F(RedisBulkTest, OutlivesEntriesThatAreNone) {
  const RedisServer server;
  TakenRows taken;
  const auto receiver = created(server.url(), "d0");
  receiver->receive(taken.taker());
  const std::string stream = "transept:default:frames:d0:1:3";
  ASSERT_TRUE(becomes([&] { return num_keys(server, "*") == 1; }));
  server.run({"SET", "transept:default:instance:d0", "precious"});
  server.run({"SADD", "transept:default:ec:set", "1"});
  server.run({"SET", "transept:default:ec:huge", std::string(kMaxEcFrameBytes + 1, 'x')});
  for (const char* key : {"transept:default:instance:d0", "transept:default:ec:none", "transept:default:ec:set",
                          "transept:default:ec:huge", ""}) {
    server.run({"XADD", stream, "*", "key", key});
  }
  server.run({"XADD", stream, "*", "other", "x"});
  EXPECT_TRUE(becomes([&] { return receiver->num_lost() == 6; }));
  EXPECT_EQ(taken.num_frames(), 0);
  EXPECT_EQ(server.run({"GET", "transept:default:instance:d0"}).text, "precious");
  SendCount count;
  const auto sender = created(server.url(), "e0");
  sender->send(receiver->address(), count.sending("r0", rows_of(1000, 1)));
  EXPECT_TRUE(becomes([&] { return taken.bytes("r0").size() == 1000; }));
}

TEST_F(RedisBulkTest, SaysAtTheStartWhatTheUserMayNot) {
  const RedisServer server;
  server.run({"ACL", "SETUSER", "ann", "on", ">p", "~*", "+@all", "-getdel"});
  RedisUrl url = server.url();
  url.user = "ann";
  url.password = "p";
  const Status status = RedisBulk::create(url, {.self = {"d0", 1}}, nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_NE(status.message().find("GETDEL"), std::string::npos) << status;
  EXPECT_EQ(num_keys(server, "*"), 0U);
}

}  // namespace
}  // namespace transept::testing
