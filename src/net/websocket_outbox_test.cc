#include "net/websocket_outbox.h"

#include <gtest/gtest.h>

#include <string>

#include "base/utf8.h"

namespace transept {
namespace {

constexpr size_t kEach = WebSocketOutbox::kMessageOverheadBytes;

TEST(WebSocketOutbox, GivesMessagesInOrderAndCountsThem) {
  int num_wakes = 0;
  WebSocketOutbox outbox(1000, [&] { ++num_wakes; });
  EXPECT_FALSE(outbox.take_message().has_value());
  outbox.send("abc", true);
  outbox.send("de", false);
  EXPECT_EQ(num_wakes, 2);
  EXPECT_EQ(outbox.num_unsent_bytes(), 5 + 2 * kEach);
  const auto first = outbox.take_message();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->bytes, "abc");
  EXPECT_TRUE(first->is_text);
  EXPECT_EQ(outbox.num_unsent_bytes(), 5 + 2 * kEach);  // it is in flight
  const auto second = outbox.take_message();
  ASSERT_TRUE(second.has_value());
  EXPECT_FALSE(second->is_text);
  EXPECT_EQ(outbox.num_unsent_bytes(), 2 + kEach);
  EXPECT_FALSE(outbox.take_message().has_value());
  EXPECT_EQ(outbox.num_unsent_bytes(), 0);
}

TEST(WebSocketOutbox, ASlowReaderIsDroppedAtTheBound) {
  int num_wakes = 0;
  WebSocketOutbox outbox(2 * kEach + 10, [&] { ++num_wakes; });
  outbox.send(std::string(10, 'x'), true);
  outbox.send("", true);
  EXPECT_FALSE(outbox.is_gone());
  EXPECT_EQ(outbox.num_unsent_bytes(), 2 * kEach + 10);
  outbox.send("", true);
  EXPECT_TRUE(outbox.is_gone());
  EXPECT_EQ(num_wakes, 3);
  EXPECT_TRUE(outbox.was_too_slow());
  EXPECT_EQ(outbox.num_unsent_bytes(), 0);
  EXPECT_FALSE(outbox.take_message().has_value());
}

TEST(WebSocketOutbox, TheBoundIsExact) {
  WebSocketOutbox outbox(2 * kEach + 10, [] {});
  outbox.send(std::string(10, 'x'), true);
  outbox.send("y", true);  // a byte beyond it
  EXPECT_TRUE(outbox.is_gone());
}

TEST(WebSocketOutbox, OneLargeMessageIsNoSignOfASlowReader) {
  WebSocketOutbox outbox(100, [] {});
  outbox.send(std::string(1000, 'x'), true);
  EXPECT_FALSE(outbox.is_gone());
  ASSERT_TRUE(outbox.take_message().has_value());
  outbox.send("a", true);  // while the large one is in flight
  EXPECT_TRUE(outbox.was_too_slow());
}

TEST(WebSocketOutbox, NothingFollowsAClose) {
  WebSocketOutbox outbox(1000, [] {});
  EXPECT_FALSE(outbox.asked_close().has_value());
  outbox.send("before", true);
  outbox.close(4000, "why");
  outbox.close(4001, "again");
  outbox.send("behind", true);
  EXPECT_TRUE(outbox.is_closing());
  EXPECT_EQ(outbox.take_message()->bytes, "before");
  EXPECT_FALSE(outbox.take_message().has_value());
  EXPECT_EQ(outbox.asked_close()->code, 4000);
  EXPECT_EQ(outbox.asked_close()->why, "why");
}

TEST(WebSocketOutbox, ALongReasonIsCutBetweenCharacters) {
  for (const std::string_view character : {"a", "\u00e9", "\u20ac", "\U0001f600"}) {
    for (size_t offset = 0; offset < 4; ++offset) {
      WebSocketOutbox outbox(1000, [] {});
      std::string why(offset, 'x');
      while (why.size() < 200) why += character;
      outbox.close(1000, why);
      const std::string cut = outbox.asked_close()->why;
      EXPECT_TRUE(is_valid_utf8(cut));
      EXPECT_LE(cut.size(), 123);
      EXPECT_GT(cut.size(), 123 - character.size());
      EXPECT_TRUE(why.starts_with(cut));
    }
  }
}

TEST(WebSocketOutbox, WhatHasGoneTakesNothing) {
  int num_wakes = 0;
  WebSocketOutbox outbox(1000, [&] { ++num_wakes; });
  outbox.send("abc", true);
  outbox.go();
  outbox.detach();
  EXPECT_TRUE(outbox.is_gone());
  EXPECT_FALSE(outbox.was_too_slow());
  EXPECT_EQ(outbox.num_unsent_bytes(), 0);
  outbox.send("abc", true);
  outbox.close(1000, "");
  outbox.pause_reading();
  EXPECT_FALSE(outbox.take_message().has_value());
  EXPECT_FALSE(outbox.is_closing());
  EXPECT_EQ(num_wakes, 1);
}

TEST(WebSocketOutbox, PausingWakesTheConnectionOnce) {
  int num_wakes = 0;
  WebSocketOutbox outbox(1000, [&] { ++num_wakes; });
  outbox.pause_reading();
  outbox.pause_reading();
  EXPECT_TRUE(outbox.is_paused());
  outbox.resume_reading();
  EXPECT_FALSE(outbox.is_paused());
  EXPECT_EQ(num_wakes, 2);
}

TEST(WebSocketOutbox, PatienceWakesTheConnectionOnce) {
  int num_wakes = 0;
  WebSocketOutbox outbox(1000, [&] { ++num_wakes; });
  EXPECT_FALSE(outbox.is_patient());
  outbox.set_patient(false);
  EXPECT_EQ(num_wakes, 0);
  outbox.set_patient(true);
  outbox.set_patient(true);
  EXPECT_TRUE(outbox.is_patient());
  outbox.set_patient(false);
  EXPECT_FALSE(outbox.is_patient());
  EXPECT_EQ(num_wakes, 2);
}

}  // namespace
}  // namespace transept
