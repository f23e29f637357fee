// Proves that a reader gets everything, in order and once, however late it reads, and is called when there is news.
#include "async/request_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace transept {
namespace {

RequestOutput piece(std::string text, std::vector<int32_t> ids, bool finished = false) {
  RequestOutput output;
  output.request_id = "a";
  output.outputs.resize(1);
  output.outputs[0].text = std::move(text);
  output.outputs[0].token_ids = std::move(ids);
  output.outputs[0].finish_reason = finished ? FinishReason::kStop : FinishReason::kNone;
  output.finished = finished;
  return output;
}

TEST(RequestChannelTest, PiecesThatWereNotReadComeAsOne) {
  RequestChannel channel("a", {});
  EXPECT_FALSE(channel.take(Duration::zero()).has_value());
  channel.push(piece("one ", {1}));
  EXPECT_EQ((*channel.take(Duration::zero()))->outputs[0].text, "one ");
  channel.push(piece("two ", {2}));
  channel.push(piece("three ", {3}));
  channel.push(piece("four", {4, 5}, true));
  const StatusOr<RequestOutput> rest = *channel.take(std::nullopt);
  EXPECT_EQ(rest->outputs[0].text, "two three four");
  EXPECT_EQ(rest->outputs[0].token_ids, (std::vector<int32_t>{2, 3, 4, 5}));
  EXPECT_TRUE(rest->finished);
  EXPECT_TRUE(channel.has_ended());
  EXPECT_EQ(channel.take(std::nullopt)->status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(RequestChannelTest, AnErrorComesAfterWhatWasPushedBeforeIt) {
  RequestChannel channel("a", {});
  channel.push(piece("one", {1}));
  channel.fail(absl::DeadlineExceededError("late"));
  EXPECT_EQ((*channel.take(std::nullopt))->outputs[0].text, "one");
  EXPECT_FALSE(channel.has_ended());
  EXPECT_EQ(channel.take(std::nullopt)->status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(channel.has_ended());
}

TEST(RequestChannelTest, WhatTheEngineSaysOfARequestThatWasGivenUpIsDropped) {
  int num_calls = 0;
  RequestChannel channel("a", [&] { ++num_calls; });
  channel.push(piece("one", {1}));
  channel.give_up(absl::UnavailableError("gone"));
  EXPECT_EQ(num_calls, 2);
  channel.push(piece("two", {2}));
  channel.fail(absl::InternalError("late"));
  channel.give_up(absl::InternalError("again"));
  EXPECT_EQ(num_calls, 2);
  EXPECT_EQ((*channel.take(std::nullopt))->outputs[0].text, "one");
  EXPECT_EQ(channel.take(std::nullopt)->status(), absl::UnavailableError("gone"));
  EXPECT_TRUE(channel.has_ended());
}

TEST(RequestChannelTest, ARequestThatHasEndedIsNotGivenUp) {
  RequestChannel channel("a", {});
  channel.push(piece("one", {1}, true));
  channel.give_up(absl::UnavailableError("gone"));
  EXPECT_TRUE((*channel.take(std::nullopt))->finished);
}

// close() returns when no call runs, so two may not run at once.
TEST(RequestChannelTest, GivingUpWaitsForTheCallOfAPiece) {
  std::atomic<int> num_inside = 0, most_inside = 0;
  RequestChannel channel("a", [&] {
    most_inside = std::max(most_inside.load(), ++num_inside);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --num_inside;
  });
  std::thread engine([&] { channel.push(piece("one", {1})); });
  while (num_inside == 0) std::this_thread::yield();
  channel.give_up(absl::UnavailableError("gone"));
  engine.join();
  EXPECT_EQ(most_inside, 1);
}

TEST(RequestChannelTest, AReaderIsCalledWhenThereIsNewsAndAtTheEnd) {
  int num_calls = 0;
  RequestChannel channel("a", [&] { ++num_calls; });
  channel.push(piece("1", {1}));
  EXPECT_EQ(num_calls, 1);
  channel.push(piece("2", {2}));
  EXPECT_EQ(num_calls, 1) << "it knows already";
  (void)channel.take(Duration::zero());
  channel.push(piece("3", {3}));
  EXPECT_EQ(num_calls, 2);
  channel.push(piece("4", {4}, true));
  EXPECT_EQ(num_calls, 3);
}

TEST(RequestChannelTest, AWaitingReaderWakesUp) {
  RequestChannel channel("a", {});
  std::string text;
  std::thread reader([&] {
    for (bool finished = false; !finished;) {
      const StatusOr<RequestOutput> output = *channel.take(std::nullopt);
      text += output->outputs[0].text;
      finished = output->finished;
    }
  });
  for (int i = 0; i < 100; ++i) channel.push(piece(std::to_string(i % 10), {i}, i == 99));
  reader.join();
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += std::to_string(i % 10);
  EXPECT_EQ(text, expected);
}

TEST(RequestChannelTest, ClosingWaitsForTheCallAndEndsCalls) {
  std::atomic<bool> is_inside = false, may_leave = false;
  std::atomic<int> num_calls = 0;
  RequestChannel channel("a", [&] {
    ++num_calls;
    is_inside = true;
    while (!may_leave) std::this_thread::yield();
    is_inside = false;
  });
  std::thread engine([&] {
    channel.push(piece("1", {1}));
    channel.push(piece("2", {2}));
    channel.push(piece("3", {3}, true));
  });
  while (!is_inside) std::this_thread::yield();
  std::thread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    may_leave = true;
  });
  channel.close();
  EXPECT_FALSE(is_inside);
  const int num_calls_before = num_calls;
  engine.join();
  releaser.join();
  EXPECT_EQ(num_calls, num_calls_before);
}

TEST(RequestChannelTest, ClosingInsideTheCallDoesNotWait) {
  RequestChannel* self = nullptr;
  RequestChannel channel("a", [&] { self->close(); });
  self = &channel;
  channel.push(piece("1", {1}));
  channel.push(piece("2", {2}, true));
  EXPECT_FALSE(channel.close());
}

TEST(RequestChannelTest, ClosingSaysWhetherTheRequestGoesOn) {
  RequestChannel running("a", {}), ended("b", {});
  running.push(piece("1", {1}));
  ended.push(piece("1", {1}, true));
  EXPECT_TRUE(running.close());
  EXPECT_FALSE(ended.close());
}

}  // namespace
}  // namespace transept
