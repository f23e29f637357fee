#include "disagg/local_broker.h"

#include "base/folder_testing.h"
#include "disagg/broker_conformance_testing.h"
#include "disagg/local_server.h"

namespace transept::testing {
namespace {

struct LocalWorld {
  LocalWorld() { come_back_empty(); }
  std::unique_ptr<Broker> broker() {
    auto broker = LocalBroker::connect(path);
    EXPECT_TRUE(broker.ok()) << broker.status();
    return std::move(broker).value();
  }
  void go_away() { server.reset(); }
  void come_back_empty() {
    const LocalServer::Options options{{.max_frames = kWorldFrames}, kWorldTickets};
    auto started = LocalServer::start(path, ++num_started, options);
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) server = std::move(started).value();
  }

  TestFolder folder;
  std::string path = folder.path() + "/broker";
  uint64_t num_started = 0;
  std::unique_ptr<LocalServer> server;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Local, BrokerConformance, LocalWorld);

TEST(LocalBroker, RefusesAPathThatIsTooLong) {
  const std::string path = "/tmp/" + std::string(110, 'x');
  for (const Status& status : {LocalBroker::connect(path).status(), LocalServer::start(path, 1, {}).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("sockets allow 107"), std::string::npos) << status;
  }
}

TEST(LocalBroker, SaysThatNobodyIsThere) {
  TestFolder folder;
  const auto broker = LocalBroker::connect(folder.path() + "/broker");
  ASSERT_TRUE(broker.ok());
  EXPECT_EQ((*broker)->peers().status().code(), absl::StatusCode::kUnavailable);
}

TEST(LocalServer, RefusesWhatIsNoMessage) {
  LocalWorld world;
  const auto context = ZmqContext::create();
  ASSERT_TRUE(context.ok());
  auto stranger = ZmqSocket::open(**context, ZMQ_DEALER);
  ASSERT_TRUE(stranger.ok() && stranger->connect("ipc://" + world.path).ok());
  ASSERT_TRUE(becomes([&] { return stranger->try_send({}); }));
  ASSERT_TRUE(becomes([&] { return stranger->try_send(frame_of("\x01\x7f\x01")); })) << "an unknown kind";
  std::vector<std::byte> ping;
  encode_local_request({}, ping);
  ASSERT_TRUE(becomes([&] { return stranger->try_send(ping, true) && stranger->try_send(ping); }));
  EXPECT_TRUE(becomes([&] { return world.server->num_refused() == 3; }));
  ASSERT_TRUE(becomes([&] { return stranger->try_send(std::vector<std::byte>(3 * kMaxBrokerFrameBytes)); }));
  const auto broker = world.broker();
  EXPECT_TRUE(broker->peers().ok());
  EXPECT_EQ(world.server->num_refused(), 3) << "what is too large ends its connection";
}

}  // namespace
}  // namespace transept::testing
