// A client's WebSocket against a server of this folder, which peers that nobody here wrote have tested.
#include "net/websocket_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "net/websocket_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a client is told.
class Told {
 public:
  WebSocketClient::Handler handler() {
    return {.on_message =
                [this](std::string message) {
                  const MutexLock lock(mutex_);
                  messages_.push_back(std::move(message));
                  changed_.notify_all();
                },
            .on_closed =
                [this](uint16_t code) {
                  const MutexLock lock(mutex_);
                  codes_.push_back(code);
                  changed_.notify_all();
                }};
  }
  std::vector<std::string> wait_for_messages(size_t count) {
    const MutexLock lock(mutex_);
    while (messages_.size() < count && codes_.empty()) changed_.wait(mutex_);
    return messages_;
  }
  std::vector<uint16_t> wait_for_end() {
    const MutexLock lock(mutex_);
    while (codes_.empty()) changed_.wait(mutex_);
    return codes_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> messages_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint16_t> codes_ ABSL_GUARDED_BY(mutex_);
};

class WebSocketClientTest : public testing::WebSocketTest {
 protected:
  StatusOr<std::unique_ptr<WebSocketClient>> connect(Told& told, const std::string& path = "/socket",
                                                     const HttpHeaders& headers = {},
                                                     const WebSocketClient::Options& of_client = {}) {
    return WebSocketClient::connect({.host = "127.0.0.1", .port = server->port(), .path = path}, headers,
                                    told.handler(), of_client);
  }
};

TEST_F(WebSocketClientTest, SendsReceivesAndCloses) {
  start();
  Told told;
  auto client = connect(told);
  ASSERT_TRUE(client.ok()) << client.status();
  const std::string bytes("\xff\x00\x80", 3), large(100000, 'x');
  (*client)->send("grüße", true);
  (*client)->send(bytes, false);
  (*client)->send(large, true);
  (*client)->send("", true);
  EXPECT_THAT(told.wait_for_messages(4), ElementsAre("grüße", bytes, large, ""));
  const auto received = record->wait_for_messages(4);
  EXPECT_TRUE(received[0].is_text);
  EXPECT_FALSE(received[1].is_text);
  (*client)->send("last", true);
  (*client)->close();
  EXPECT_THAT(told.wait_for_end(), ElementsAre(1000));
  EXPECT_EQ(record->wait_for_messages(5).back().bytes, "last");  // what was queued went before the close
  (*client)->send("too late", true);
}

TEST_F(WebSocketClientTest, TheServersCodeIsTold) {
  start();
  Told told;
  auto client = connect(told);
  ASSERT_TRUE(client.ok()) << client.status();
  record->wait_for_open()->close(4321, "bye");
  EXPECT_THAT(told.wait_for_end(), ElementsAre(4321));
}

TEST_F(WebSocketClientTest, AMessageThatIsTooLongEndsIt) {
  start();
  Told told;
  auto client = connect(told, "/socket", {}, {.max_message_bytes = 10});
  ASSERT_TRUE(client.ok()) << client.status();
  (*client)->send("0123456789", true);
  EXPECT_THAT(told.wait_for_messages(1), ElementsAre("0123456789"));
  (*client)->send("0123456789a", true);
  told.wait_for_end();
  EXPECT_THAT(told.wait_for_messages(1), ElementsAre("0123456789"));
}

TEST_F(WebSocketClientTest, DestroyedItIsGone) {
  start();
  Told told;
  auto client = connect(told);
  ASSERT_TRUE(client.ok()) << client.status();
  const auto socket = record->wait_for_open();
  client->reset();
  while (!socket->is_gone()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

TEST_F(WebSocketClientTest, RefusalsHaveTheirStatus) {
  start();
  Told told;
  const Status refused = connect(told, "/nothing").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(error_message(refused), HasSubstr(str_cat("127.0.0.1:", server->port(), ": the server answered ")));
  EXPECT_EQ(connect(told, "/socket", {{"X-A", "a\r\nB: c"}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(connect(told, "/socket", {{"X A", "a"}}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WebSocketClient, NoServerIsSaid) {
  Told told;
  const auto client = WebSocketClient::connect({.host = "127.0.0.1", .port = 1, .path = "/"}, {}, told.handler(), {});
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(error_message(client.status()), HasSubstr("127.0.0.1:1: "));
}

}  // namespace
}  // namespace transept
