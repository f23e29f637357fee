// The receiver against the drawing: every state and every event. Expectations are written from the design of the
// handshake (docs/decisions/0031-encoder-rows-by-wire.md), not from the table of ec_receiver.cc.
#include "encoder_cache/ec_receiver.h"

#include <gtest/gtest.h>

#include <map>

#include "base/content_digest_testing.h"

namespace transept {
namespace {

using std::chrono::seconds;
using S = EcReceiverState;
using E = EcReceiverEvent;
using A = EcReceiverAction;
using Actions = std::vector<A>;

constexpr TimePoint kStart{};
const InstanceId kSender{"e0", 11};

EcMeta meta(uint32_t attempt = 4) {
  EcMeta meta;
  meta.key = {"r", 0, attempt};
  meta.digest = testing::digest_of(1);
  meta.num_positions = 3;
  meta.width = 2;
  meta.time_left = seconds(1000);
  return meta;
}

class Driver {
 public:
  Driver() : receiver(kSender, meta(), kStart, EcTimes()) {}

  Actions on(E event) {
    Actions actions;
    receiver.on(event, now, actions);
    return actions;
  }
  // Time passes until the receiver's next time.
  Actions wait() {
    now = receiver.next_time();
    return on(E::kTime);
  }

  EcReceiver receiver;
  TimePoint now = kStart;
};

// By the straight way.
Driver in_state(S state) {
  const std::map<S, std::vector<E>> ways = {{S::kWaiting, {}},
                                            {S::kReserved, {E::kRoom}},
                                            {S::kReceiving, {E::kRoom, E::kChunk}},
                                            {S::kInjected, {E::kRoom, E::kComplete}},
                                            {S::kClaimed, {E::kHit, E::kClaim}},
                                            {S::kClosing, {E::kRoom, E::kAbort}},
                                            {S::kReopening, {E::kRoom, E::kNewAttempt}},
                                            {S::kConsumed, {E::kHit, E::kClaim, E::kConsume}},
                                            {S::kExpired, {E::kAbort}}};
  Driver driver;
  for (const E event : ways.at(state)) driver.on(event);
  return driver;
}

struct Expected {
  S to;
  Actions actions;
};

// What each event means; in the states that its row lacks it means nothing.
std::map<E, std::map<S, Expected>> drawing() {
  const Expected closes{S::kClosing, {A::kCloseSink}}, closes_and_tells{S::kClosing, {A::kCloseSink, A::kSendCancel}};
  const Expected injected{S::kInjected, {A::kSendInjected, A::kTellReady}};
  const Expected mismatch{S::kExpired, {A::kRelease, A::kSendMismatch}};
  const Expected over{S::kExpired, {A::kSendCancel}};
  const Expected unused{S::kConsumed, {A::kRelease}};
  const Expected reopens{S::kReopening, {A::kCloseSink, A::kSendWait}};
  return {
      {E::kRoom, {{S::kWaiting, {S::kReserved, {A::kOpenSink, A::kSendAllocated}}}}},
      {E::kHit, {{S::kWaiting, {S::kInjected, {A::kSendHit, A::kTellReady}}}}},
      {E::kNever, {{S::kWaiting, {S::kExpired, {A::kSendNever}}}}},
      {E::kChunk, {{S::kReserved, {S::kReceiving, {}}}, {S::kReceiving, {S::kReceiving, {}}}}},
      {E::kComplete, {{S::kReserved, injected}, {S::kReceiving, injected}}},
      {E::kMismatch,
       {{S::kWaiting, {S::kExpired, {A::kSendMismatch}}}, {S::kReserved, mismatch}, {S::kReceiving, mismatch}}},
      {E::kClaim, {{S::kInjected, {S::kClaimed, {}}}}},
      {E::kConsume, {{S::kClaimed, {S::kConsumed, {A::kRelease}}}}},
      {E::kAnnounced,
       {{S::kWaiting, {S::kWaiting, {A::kSendWait}}},
        {S::kReserved, {S::kReserved, {A::kSendAllocated}}},
        {S::kReceiving, {S::kReceiving, {A::kSendAllocated}}},
        {S::kInjected, {S::kInjected, {A::kSendHit}}},
        {S::kClaimed, {S::kClaimed, {A::kSendHit}}},
        {S::kClosing, {S::kClosing, {A::kSendGone}}},
        {S::kReopening, {S::kReopening, {A::kSendWait}}},
        {S::kConsumed, {S::kConsumed, {A::kSendHit}}},
        {S::kExpired, {S::kExpired, {A::kSendGone}}}}},
      {E::kQuery,
       {{S::kWaiting, {S::kWaiting, {A::kSendWait}}},
        {S::kReserved, {S::kReserved, {A::kSendAllocated}}},
        {S::kReceiving, {S::kReceiving, {A::kSendAllocated}}},
        {S::kInjected, {S::kInjected, {A::kSendInjected}}},
        {S::kClaimed, {S::kClaimed, {A::kSendInjected}}},
        {S::kClosing, {S::kClosing, {A::kSendNotInjected}}},
        {S::kReopening, {S::kReopening, {A::kSendWait}}},
        {S::kConsumed, {S::kConsumed, {A::kSendInjected}}},
        {S::kExpired, {S::kExpired, {A::kSendNotInjected}}}}},
      {E::kNewAttempt,
       {{S::kWaiting, {S::kWaiting, {A::kSendWait}}},
        {S::kReserved, reopens},
        {S::kReceiving, reopens},
        {S::kClosing, {S::kReopening, {A::kSendWait}}},
        {S::kReopening, {S::kReopening, {A::kSendWait}}},
        {S::kInjected, {S::kInjected, {A::kSendHit}}},
        {S::kClaimed, {S::kClaimed, {A::kSendHit}}}}},
      {E::kLetGo,
       {{S::kReopening, {S::kReserved, {A::kOpenSink, A::kSendAllocated}}},
        {S::kClosing, {S::kExpired, {A::kRelease}}}}},
      {E::kCancel,
       {{S::kWaiting, {S::kExpired, {}}},
        {S::kReserved, closes},
        {S::kReceiving, closes},
        {S::kReopening, {S::kClosing, {}}},
        {S::kInjected, {S::kExpired, {A::kRelease}}}}},
      {E::kLeaseOver, {{S::kWaiting, {S::kExpired, {}}}, {S::kReserved, closes}, {S::kReceiving, closes}}},
      {E::kDeadline,
       {{S::kWaiting, over},
        {S::kReserved, closes_and_tells},
        {S::kReceiving, closes_and_tells},
        {S::kReopening, {S::kClosing, {A::kSendCancel}}},
        {S::kInjected, unused}}},
      {E::kAbort,
       {{S::kWaiting, over},
        {S::kReserved, closes_and_tells},
        {S::kReceiving, closes_and_tells},
        {S::kReopening, {S::kClosing, {A::kSendCancel}}},
        {S::kInjected, unused},
        {S::kClaimed, unused}}},
      {E::kUnclaimed, {{S::kInjected, unused}}},
      {E::kTime, {}},
  };
}

TEST(EcReceiver, EveryStateAndEvent) {
  const auto expected = drawing();
  ASSERT_EQ(expected.size(), static_cast<size_t>(kNumEcReceiverEvents));
  for (const auto& [event, rows] : expected) {
    for (int state = 0; state < kNumEcReceiverStates; ++state) {
      const auto from = static_cast<S>(state);
      Driver driver = in_state(from);
      ASSERT_EQ(driver.receiver.state(), from);
      const Actions actions = driver.on(event);
      const auto row = rows.find(from);
      const std::string what = str_cat("state ", state, ", event ", static_cast<int>(event));
      EXPECT_EQ(driver.receiver.state(), row == rows.end() ? from : row->second.to) << what;
      EXPECT_EQ(actions, row == rows.end() ? Actions{} : row->second.actions) << what;
    }
  }
}

TEST(EcReceiver, HoldsRoomFromItsGrantToItsEnd) {
  for (const S state : {S::kWaiting, S::kConsumed, S::kExpired}) EXPECT_FALSE(in_state(state).receiver.has_room());
  for (const S state : {S::kReserved, S::kReceiving, S::kInjected, S::kClaimed, S::kClosing, S::kReopening}) {
    EXPECT_TRUE(in_state(state).receiver.has_room());
    EXPECT_FALSE(in_state(state).receiver.is_over());
  }
}

// ---- Who speaks

TEST(EcReceiver, OldAttemptsAndOtherSendersAreGone) {
  Driver driver = in_state(S::kReserved);
  Actions actions;
  EXPECT_FALSE(driver.receiver.on_metadata(kSender, meta(3), kStart, actions));
  EXPECT_FALSE(driver.receiver.on_metadata({"e0", 12}, meta(), kStart, actions)) << "restarted";
  EXPECT_FALSE(driver.receiver.on_metadata({"e1", 11}, meta(), kStart, actions));
  EXPECT_EQ(actions, Actions{});
  EXPECT_TRUE(driver.receiver.on_metadata(kSender, meta(), kStart, actions));
  EXPECT_EQ(actions, Actions{A::kSendAllocated});
  EXPECT_TRUE(driver.receiver.is_sender(kSender, meta().key));
  EXPECT_FALSE(driver.receiver.is_sender({"e0", 12}, meta().key));
  EXPECT_FALSE(driver.receiver.is_sender(kSender, meta(5).key));
}

TEST(EcReceiver, ANewerAttemptIsItsSendersFromThenOn) {
  Driver driver = in_state(S::kReceiving);
  Actions actions;
  const InstanceId other{"e1", 5};
  EXPECT_TRUE(driver.receiver.on_metadata(other, meta(5), kStart, actions));
  EXPECT_EQ(actions, (Actions{A::kCloseSink, A::kSendWait}));
  EXPECT_EQ(driver.receiver.from(), other);
  EXPECT_EQ(driver.receiver.key().attempt, 5u);
  EXPECT_TRUE(driver.receiver.is_sender(other, meta(5).key));
  EXPECT_FALSE(driver.receiver.on_metadata(kSender, meta(), kStart, actions));
  EXPECT_EQ(driver.on(E::kLetGo), (Actions{A::kOpenSink, A::kSendAllocated}));
}

TEST(EcReceiver, ComparesOutputs) {
  const Driver driver;
  EcMeta other = meta();
  EXPECT_TRUE(driver.receiver.has_same_output(other));
  other.num_positions = 4;
  EXPECT_FALSE(driver.receiver.has_same_output(other));
  other = meta();
  other.digest = testing::digest_of(2);
  EXPECT_FALSE(driver.receiver.has_same_output(other));
}

TEST(EcReceiver, ACancelThatCameFirstIsRemembered) {
  EcReceiver receiver = EcReceiver::cancelled(kSender, meta().key, kStart, EcTimes());
  EXPECT_EQ(receiver.state(), S::kExpired);
  Actions actions;
  EXPECT_TRUE(receiver.on_metadata(kSender, meta(), kStart, actions));
  EXPECT_EQ(actions, Actions{A::kSendGone});
}

// ---- Time

TEST(EcReceiver, ALeaseEndsAfter30SecondsOfSilence) {
  for (const S state : {S::kWaiting, S::kReserved, S::kReceiving}) {
    for (const E event : {E::kAnnounced, E::kQuery, E::kChunk}) {
      if (event == E::kChunk && state == S::kWaiting) continue;
      Driver driver = in_state(state);
      driver.now += seconds(29);
      EXPECT_EQ(driver.on(E::kTime), Actions{});
      driver.on(event);
      driver.now += seconds(29);
      EXPECT_EQ(driver.on(E::kTime), Actions{}) << "renewed";
      driver.now += seconds(1);
      EXPECT_EQ(driver.receiver.next_time(), driver.now);
      EXPECT_EQ(driver.on(E::kTime), state == S::kWaiting ? Actions{} : Actions{A::kCloseSink});
      EXPECT_EQ(driver.receiver.state(), state == S::kWaiting ? S::kExpired : S::kClosing);
    }
  }
}

TEST(EcReceiver, RoomThatIsGivenLateHasAWholeLease) {
  Driver driver;
  driver.now += seconds(25);
  driver.on(E::kRoom);
  EXPECT_EQ(driver.receiver.next_time(), driver.now + seconds(30));
}

TEST(EcReceiver, AnUnclaimedOutputIsGivenUpAfter60Seconds) {
  Driver driver = in_state(S::kInjected);
  driver.now += seconds(59);
  EXPECT_EQ(driver.on(E::kAnnounced), Actions{A::kSendHit}) << "which does not renew it";
  EXPECT_EQ(driver.on(E::kTime), Actions{});
  EXPECT_EQ(driver.wait(), Actions{A::kRelease});
  EXPECT_EQ(driver.now, kStart + seconds(60));
  Driver claimed = in_state(S::kClaimed);
  EXPECT_EQ(claimed.receiver.next_time(), TimePoint::max());
  claimed.now += seconds(5000);
  EXPECT_EQ(claimed.on(E::kTime), Actions{}) << "its request ends it";
}

TEST(EcReceiver, WhatIsOverIsRememberedForTwoLeases) {
  for (const S state : {S::kConsumed, S::kExpired}) {
    Driver driver = in_state(state);
    EXPECT_EQ(driver.receiver.next_time(), kStart + seconds(60));
    driver.on(E::kQuery);
    EXPECT_FALSE(driver.receiver.is_forgotten(kStart + seconds(59)));
    EXPECT_TRUE(driver.receiver.is_forgotten(kStart + seconds(60)));
  }
  EXPECT_FALSE(in_state(S::kInjected).receiver.is_forgotten(TimePoint::max()));
}

TEST(EcReceiver, AClosingSinkHasNoTime) { EXPECT_EQ(in_state(S::kClosing).receiver.next_time(), TimePoint::max()); }

TEST(EcReceiver, TheDeadlineTravelsAsTheTimeThatIsLeft) {
  const auto deadline = [](const Driver& driver) { return driver.receiver.next_time(); };
  Driver driver = in_state(S::kReopening);
  EXPECT_EQ(deadline(driver), kStart + seconds(1000));
  Actions actions;
  EcMeta again = meta();
  again.time_left = seconds(900);  // a slow message of long ago, and a fast one
  driver.receiver.on_metadata(kSender, again, kStart + seconds(150), actions);
  EXPECT_EQ(deadline(driver), kStart + seconds(1000));
  driver.receiver.on_metadata(kSender, again, kStart + seconds(50), actions);
  EXPECT_EQ(deadline(driver), kStart + seconds(950));
  again.key.attempt = 5;
  driver.receiver.on_metadata(kSender, again, kStart + seconds(150), actions);
  EXPECT_EQ(deadline(driver), kStart + seconds(1050)) << "another attempt, another message";
  EXPECT_EQ(driver.wait(), Actions{A::kSendCancel});
}

TEST(EcReceiver, TheDeadlineEndsWhatIsNotClaimed) {
  const std::map<S, Actions> actions = {{S::kWaiting, {A::kSendCancel}},
                                        {S::kReserved, {A::kCloseSink, A::kSendCancel}},
                                        {S::kReceiving, {A::kCloseSink, A::kSendCancel}},
                                        {S::kReopening, {A::kSendCancel}},
                                        {S::kInjected, {A::kRelease}}};
  for (const auto& [state, expected] : actions) {
    Driver driver = in_state(state);
    driver.now = kStart + seconds(1000);
    EXPECT_EQ(driver.on(E::kTime), expected) << static_cast<int>(state);
  }
}

}  // namespace
}  // namespace transept
