#include "disagg/zmq_bulk.h"

#include "base/folder_testing.h"
#include "disagg/bulk_conformance_testing.h"

namespace transept::testing {
namespace {

std::unique_ptr<BulkTransport> created(const std::string& address) {
  auto bulk = ZmqBulk::create(address, std::make_shared<FrameWriter>(1, nullptr));
  EXPECT_TRUE(bulk.ok()) << bulk.status();
  return bulk.ok() ? std::move(bulk).value() : nullptr;
}

struct IpcWorld {
  std::unique_ptr<BulkTransport> transport(const std::string& name) {
    return created(str_cat("ipc://", folder.path(), "/", name));
  }
  TestFolder folder;
};
struct TcpWorld {
  std::unique_ptr<BulkTransport> transport(const std::string& /*name*/) { return created("tcp://127.0.0.1:*"); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Ipc, BulkConformance, IpcWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(Tcp, BulkConformance, TcpWorld);

TEST(ZmqBulk, RefusesAddresses) {
  const auto writer = std::make_shared<FrameWriter>(1, nullptr);
  const auto error = [&](const std::string& address) { return ZmqBulk::create(address, writer).status(); };
  const Status too_long = error("ipc:///tmp/" + std::string(120, 'x'));
  EXPECT_EQ(too_long.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(too_long.message().find("its path has 125 bytes; sockets allow 107"), std::string::npos) << too_long;
  EXPECT_EQ(error("inproc://x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error("ipc://").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error("tcp://").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error("ipc:///no/such/folder/x").code(), absl::StatusCode::kUnavailable);
}

TEST(ZmqBulk, FailsOutputsForAnAddressThatIsNone) {
  TestFolder folder;
  const auto sender = created(str_cat("ipc://", folder.path(), "/e0"));
  SendCount count;
  sender->send("inproc://x", count.sending("r0", rows_of(1000, 1)));
  EXPECT_TRUE(becomes([&] { return count.num_failed == 1; }));
}

// Whoever connects may send anything.
TEST(ZmqBulk, OutlivesMessagesThatAreNoFrames) {
  TestFolder folder;
  TakenRows taken;
  const auto receiver = created(str_cat("ipc://", folder.path(), "/d0"));
  receiver->receive(taken.taker());
  const auto context = ZmqContext::create();
  ASSERT_TRUE(context.ok());
  const auto connect = [&] {
    auto socket = ZmqSocket::open(**context, ZMQ_PUSH);
    EXPECT_TRUE(socket.ok() && socket->connect(receiver->address()).ok());
    return std::move(socket).value();
  };
  {
    ZmqSocket stranger = connect();
    const std::vector<std::byte> half(kMaxEcFrameBytes / 2 + 1), huge(kMaxEcFrameBytes + 1);
    ASSERT_TRUE(becomes([&] { return stranger.try_send({}); }));
    ASSERT_TRUE(becomes([&] { return stranger.try_send(frame_of("x"), true) && stranger.try_send({}); }));
    // Two parts, each within the limit, together not.
    ASSERT_TRUE(becomes([&] { return stranger.try_send(half, true) && stranger.try_send(half); }));
    const auto* const bulk = dynamic_cast<ZmqBulk*>(receiver.get());
    EXPECT_TRUE(becomes([&] { return bulk->num_cut() == 1; }));
    ASSERT_TRUE(becomes([&] { return stranger.try_send(huge); }));
  }
  SendCount count;
  const auto sender = created(str_cat("ipc://", folder.path(), "/e0"));
  sender->send(receiver->address(), count.sending("r0", rows_of(1000, 1)));
  EXPECT_TRUE(becomes([&] { return taken.bytes("r0").size() == 1000; }));
  EXPECT_EQ(taken.num_frames(), 3) << "two that are no frames, and the right one";
}

}  // namespace
}  // namespace transept::testing
