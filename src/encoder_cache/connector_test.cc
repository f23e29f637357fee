#include "encoder_cache/connector.h"

#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace transept {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

EcEvent message(uint32_t input_id) {
  return EcPeerMessage{{"e", 1}, EcQuery{{.request_id = "r", .input_id = input_id}}};
}

uint32_t input_of_message(const EcEvent& event) {
  return std::get<EcQuery>(std::get<EcPeerMessage>(event).message).key.input_id;
}

TEST(EcInboxTest, KeepsTheOrder) {
  EcInbox inbox(10, nullptr);
  for (uint32_t i = 0; i < 7; ++i) ASSERT_TRUE(inbox.put(message(i)));
  std::vector<EcEvent> events;
  uint32_t next = 0;
  for (const size_t at_most : {2, 3, 10}) {
    inbox.take(at_most, events);
    EXPECT_THAT(events, SizeIs(at_most == 10 ? 2 : at_most));
    for (const EcEvent& event : events) EXPECT_EQ(input_of_message(event), next++);
  }
  EXPECT_EQ(next, 7u);
  EXPECT_TRUE(inbox.is_empty());
  inbox.take(1, events);
  EXPECT_THAT(events, IsEmpty());
}

TEST(EcInboxTest, DropsMessagesThatFindItFull) {
  EcInbox inbox(2, nullptr);
  EXPECT_TRUE(inbox.put(message(0)));
  EXPECT_TRUE(inbox.put(message(1)));
  EXPECT_FALSE(inbox.put(message(2)));
  EXPECT_EQ(inbox.num_dropped(), 1);
  std::vector<EcEvent> events;
  inbox.take(1, events);
  EXPECT_TRUE(inbox.put(message(3)));
  inbox.take(10, events);
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(input_of_message(events[0]), 1u);
  EXPECT_EQ(input_of_message(events[1]), 3u);
}

TEST(EcInboxTest, APeerThatSaysALotLeavesPlacesToOthers) {
  EcInbox inbox(8, nullptr);
  const auto say = [&](const char* name, uint64_t incarnation = 1) {
    return inbox.put(EcPeerMessage{{name, incarnation}, EcQuery{{.request_id = "r"}}});
  };
  EXPECT_TRUE(say("f"));
  std::vector<EcEvent> events;
  inbox.take(1, events);
  int num_taken = 0;
  for (uint64_t i = 0; i < 100; ++i) num_taken += say("e", i) ? 1 : 0;
  EXPECT_EQ(num_taken, 4) << "whatever its incarnation";
  EXPECT_TRUE(say("f"));
  EXPECT_TRUE(say("f"));
  EXPECT_FALSE(say("f"));
  EXPECT_TRUE(say("g"));
  EXPECT_EQ(inbox.num_dropped(), 97);
  inbox.take(100, events);
  EXPECT_THAT(events, SizeIs(7));
  EXPECT_TRUE(say("e"));
}

TEST(EcInboxTest, NeverDropsWhatTransportsSay) {
  EcInbox inbox(1, nullptr);
  ASSERT_TRUE(inbox.put(message(0)));
  EXPECT_TRUE(inbox.put(EcSendEvent{}));
  EXPECT_TRUE(inbox.put(EcSinkEvent{}));
  EXPECT_TRUE(inbox.put(EcPathEvent{}));
  EXPECT_TRUE(inbox.put(EcPeerGone{}));
  EXPECT_EQ(inbox.num_dropped(), 0);
}

TEST(EcInboxTest, WakesOnceForEachTimeThatItWasEmpty) {
  int num_wakes = 0;
  EcInbox inbox(1, [&] { ++num_wakes; });
  inbox.put(message(0));
  inbox.put(message(1));  // dropped
  inbox.put(EcPathEvent{});
  EXPECT_EQ(num_wakes, 1);
  std::vector<EcEvent> events;
  inbox.take(1, events);
  inbox.put(EcPathEvent{});
  EXPECT_EQ(num_wakes, 1);
  inbox.take(9, events);
  inbox.put(EcPathEvent{});
  EXPECT_EQ(num_wakes, 2);
}

TEST(EcInboxTest, TakesFromManyThreads) {
  std::atomic<int> num_wakes = 0;
  EcInbox inbox(1000, [&] { ++num_wakes; });
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&inbox, i] {
      for (int k = 0; k < 200; ++k) inbox.put(message(i));
    });
  }
  std::vector<int> counts(4);
  std::vector<EcEvent> events;
  for (int taken = 0; taken < 800;) {
    inbox.take(7, events);
    for (const EcEvent& event : events) ++counts[input_of_message(event)];
    taken += static_cast<int>(events.size());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(counts, ::testing::Each(200));
  EXPECT_GE(num_wakes, 1);
  EXPECT_EQ(inbox.num_dropped(), 0);
}

}  // namespace
}  // namespace transept
