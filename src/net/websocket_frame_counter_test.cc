#include "net/websocket_frame_counter.h"

#include <gtest/gtest.h>

#include <string>

#include "net/websocket_testing.h"

namespace transept {
namespace {

using testing::ClientFrame;

TEST(WebSocketFrameCounter, CountsAMessageUntilItsEnd) {
  WebSocketFrameCounter frames;
  frames.feed(ClientFrame{.payload = "abc", .is_final = false}.bytes());
  EXPECT_TRUE(frames.is_in_message());
  EXPECT_EQ(frames.num_frames(), 1);
  EXPECT_EQ(frames.num_payload_bytes(), 3);
  frames.feed(ClientFrame{.opcode = testing::kPing, .payload = "ping"}.bytes());
  frames.feed(ClientFrame{.opcode = testing::kContinuation, .is_final = false}.bytes());
  EXPECT_EQ(frames.num_frames(), 2);
  EXPECT_EQ(frames.num_payload_bytes(), 3);
  const std::string last = ClientFrame{.opcode = testing::kContinuation, .payload = "de"}.bytes();
  frames.feed(last.substr(0, last.size() - 1));
  EXPECT_TRUE(frames.is_in_message());
  EXPECT_EQ(frames.num_payload_bytes(), 4);
  frames.feed(last.substr(last.size() - 1));
  EXPECT_FALSE(frames.is_in_message());
  EXPECT_EQ(frames.num_messages(), 1);
  EXPECT_EQ(frames.most_frames(), 3);
  frames.feed(ClientFrame{.opcode = testing::kBinary}.bytes());  // of no bytes
  EXPECT_FALSE(frames.is_in_message());
  EXPECT_EQ(frames.num_messages(), 2);
  EXPECT_EQ(frames.most_frames(), 3);
}

// Lengths of one, three and nine bytes, masked or not, in pieces of every size.
TEST(WebSocketFrameCounter, FindsFramesHoweverTheyAreCut) {
  std::string bytes;
  size_t num_frames = 0, num_bytes = 0;
  for (const size_t size : {0, 1, 125, 126, 1000, 65535, 65536, 70000}) {
    for (const bool is_masked : {true, false}) {
      bytes += ClientFrame{.payload = std::string(size, 'x'), .is_final = false, .is_masked = is_masked}.bytes();
      ++num_frames;
      num_bytes += size;
    }
  }
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{13}, size_t{4096}, bytes.size()}) {
    WebSocketFrameCounter frames;
    for (size_t at = 0; at < bytes.size(); at += piece) frames.feed(std::string_view(bytes).substr(at, piece));
    EXPECT_EQ(frames.num_frames(), num_frames) << piece;
    EXPECT_EQ(frames.num_payload_bytes(), num_bytes) << piece;
    frames.feed(ClientFrame{.opcode = testing::kContinuation}.bytes());
    EXPECT_EQ(frames.num_messages(), 1) << piece;
  }
}

}  // namespace
}  // namespace transept
