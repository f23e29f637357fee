// The sender against the drawing: every state and every event. Expectations are written from the design of the
// handshake (docs/decisions/0031-encoder-rows-by-wire.md), not from the table of ec_sender.cc.
#include "encoder_cache/ec_sender.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "base/content_digest_testing.h"

namespace transept {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using S = EcSenderState;
using E = EcSenderEvent;
using A = EcSenderAction;
using Actions = std::vector<A>;

constexpr TimePoint kStart{};

EcMeta meta() {
  EcMeta meta;
  meta.key = {"r", 0, 4};
  meta.digest = testing::digest_of(1);
  meta.num_positions = 3;
  meta.width = 2;
  meta.time_left = seconds(1000);
  return meta;
}

class Driver {
 public:
  explicit Driver(uint64_t seed = 1, const EcTimes& times = {}) : sender(meta(), kStart, times, seed) {}

  Actions on(E event) {
    Actions actions;
    sender.on(event, now, actions);
    return actions;
  }
  Actions allocation(EcVerdict verdict, uint64_t reservation = 0, std::optional<uint32_t> attempt = {}) {
    EcAllocation said{sender.key(), verdict, reservation, reservation == 0 ? "" : "tcp://p:1"};
    if (attempt) said.key.attempt = *attempt;
    Actions actions;
    sender.on_allocation(said, now, actions);
    return actions;
  }
  Actions injection(EcVerdict verdict, std::optional<uint32_t> attempt = {}) {
    EcInjection said{sender.key(), verdict};
    if (attempt) said.key.attempt = *attempt;
    Actions actions;
    sender.on_injection(said, now, actions);
    return actions;
  }
  // Time passes until the sender's next time.
  Actions wait() {
    now = sender.next_time();
    return on(E::kTime);
  }

  EcSender sender;
  TimePoint now = kStart;
};

// By the straight way.
Driver in_state(S state) {
  Driver driver;
  if (state == S::kQueued) return driver;
  driver.on(E::kStart);
  if (state == S::kAnnounced) return driver;
  if (state == S::kFailed) {
    driver.on(E::kAbort);
    return driver;
  }
  driver.allocation(EcVerdict::kAllocated, 77);
  if (state == S::kGranted) return driver;
  driver.on(E::kEncoded);
  if (state == S::kSending) return driver;
  driver.on(E::kSendDone);
  if (state == S::kSent) return driver;
  driver.injection(EcVerdict::kAllocated);
  return driver;
}

struct Expected {
  S to;
  Actions actions;
};

// What each event means in the live states of its row; in all others it means nothing.
std::map<E, std::map<S, Expected>> drawing() {
  const Actions cancel{A::kSendCancel, A::kAnswer}, answer{A::kAnswer}, stop_answer{A::kStopSending, A::kAnswer},
      stop_cancel{A::kStopSending, A::kSendCancel, A::kAnswer}, announce{A::kSendMetadata};
  const auto ends = [](S to, const Actions& queued, const Actions& sending, const Actions& other) {
    return std::map<S, Expected>{{S::kQueued, {to, queued}},
                                 {S::kAnnounced, {to, other}},
                                 {S::kGranted, {to, other}},
                                 {S::kSending, {to, sending}},
                                 {S::kSent, {to, other}}};
  };
  const std::map<S, Expected> again = {{S::kAnnounced, {S::kAnnounced, announce}},
                                       {S::kGranted, {S::kAnnounced, announce}},
                                       {S::kSending, {S::kAnnounced, {A::kStopSending, A::kSendMetadata}}},
                                       {S::kSent, {S::kAnnounced, announce}}};
  return {
      {E::kStart, {{S::kQueued, {S::kAnnounced, announce}}}},
      {E::kAllocated, {{S::kAnnounced, {S::kGranted, {}}}}},
      {E::kEncoded, {{S::kGranted, {S::kSending, {A::kSendCache}}}}},
      {E::kSendDone, {{S::kSending, {S::kSent, {}}}}},
      {E::kHit, ends(S::kDone, answer, stop_answer, answer)},
      {E::kInjected, ends(S::kDone, answer, stop_answer, answer)},
      {E::kGone, again},
      {E::kStalled, {{S::kSending, again.at(S::kSending)}}},
      {E::kSendFailed, {{S::kSending, {S::kAnnounced, announce}}}},
      {E::kNever, ends(S::kFailed, answer, stop_answer, answer)},
      {E::kIncompatible, ends(S::kFailed, answer, stop_answer, answer)},
      {E::kCancelled, ends(S::kFailed, answer, stop_answer, answer)},
      {E::kOutboxFull, ends(S::kFailed, answer, stop_answer, answer)},
      {E::kAbort, ends(S::kFailed, answer, stop_cancel, cancel)},
      {E::kDeadline, ends(S::kFailed, answer, stop_cancel, cancel)},
      {E::kPeerGone, ends(S::kFailed, answer, stop_cancel, cancel)},
      {E::kNoAnswer, ends(S::kFailed, cancel, cancel, cancel)},
      {E::kAttemptsOver, ends(S::kFailed, cancel, stop_cancel, cancel)},
      {E::kAgain,
       {{S::kAnnounced, {S::kAnnounced, announce}},
        {S::kGranted, {S::kGranted, announce}},
        {S::kSent, {S::kSent, {A::kSendQuery}}}}},
      {E::kUnfinished, {{S::kSent, {S::kSending, {A::kSendCache}}}}},
      {E::kWait, {}},
      {E::kBusy, {}},
      {E::kSendProgress, {}},
      {E::kPathAway, {}},
      {E::kPathBack, {}},
      {E::kTime, {}},
  };
}

TEST(EcSender, EveryStateAndEvent) {
  const auto expected = drawing();
  ASSERT_EQ(expected.size(), static_cast<size_t>(kNumEcSenderEvents));
  for (const auto& [event, rows] : expected) {
    for (int state = 0; state < kNumEcSenderStates; ++state) {
      const auto from = static_cast<S>(state);
      Driver driver = in_state(from);
      ASSERT_EQ(driver.sender.state(), from);
      const Actions actions = driver.on(event);
      const auto row = rows.find(from);
      const std::string what = str_cat("state ", state, ", event ", static_cast<int>(event));
      EXPECT_EQ(driver.sender.state(), row == rows.end() ? from : row->second.to) << what;
      EXPECT_EQ(actions, row == rows.end() ? Actions{} : row->second.actions) << what;
      const bool is_new_attempt = event == E::kGone || event == E::kStalled || event == E::kSendFailed;
      EXPECT_EQ(driver.sender.key().attempt, is_new_attempt && row != rows.end() ? 5u : 4u) << what;
      EXPECT_EQ(driver.sender.next_time() == TimePoint::max(), driver.sender.is_over()) << what;
    }
  }
}

// ---- The straight way, and its short cuts

TEST(EcSender, SendsWhenBothRoomAndRowsAreThere) {
  for (const bool encoded_first : {true, false}) {
    Driver driver;
    EXPECT_EQ(driver.on(E::kStart), Actions{A::kSendMetadata});
    const auto encoded = [&] { return driver.on(E::kEncoded); };
    const auto granted = [&] { return driver.allocation(EcVerdict::kAllocated, 77); };
    EXPECT_EQ(encoded_first ? encoded() : granted(), Actions{});
    EXPECT_EQ(encoded_first ? granted() : encoded(), Actions{A::kSendCache});
    EXPECT_EQ(driver.sender.reservation(), 77u);
    EXPECT_EQ(driver.sender.bulk_address(), "tcp://p:1");
    EXPECT_EQ(driver.on(E::kSendDone), Actions{});
    EXPECT_EQ(driver.injection(EcVerdict::kAllocated), Actions{A::kAnswer});
    EXPECT_TRUE(driver.sender.status().ok());
    EXPECT_EQ(driver.injection(EcVerdict::kAllocated), Actions{}) << "told twice";
  }
}

TEST(EcSender, AVerdictIsItsEvent) {
  EXPECT_EQ(in_state(S::kAnnounced).allocation(EcVerdict::kHit), Actions{A::kAnswer});
  EXPECT_EQ(in_state(S::kSent).injection(EcVerdict::kHit), Actions{A::kAnswer});
  const auto status = [](EcVerdict verdict) {
    Driver driver = in_state(S::kAnnounced);
    EXPECT_EQ(driver.allocation(verdict), Actions{A::kAnswer});
    return driver.sender.status().code();
  };
  EXPECT_EQ(status(EcVerdict::kNever), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status(EcVerdict::kIncompatible), absl::StatusCode::kFailedPrecondition);
  Driver mismatch = in_state(S::kSent);
  EXPECT_EQ(mismatch.injection(EcVerdict::kIncompatible), Actions{A::kAnswer});
  EXPECT_EQ(mismatch.sender.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(EcSender, SaysWhyItFailed) {
  const std::map<E, absl::StatusCode> codes = {
      {E::kAbort, absl::StatusCode::kCancelled},           {E::kCancelled, absl::StatusCode::kCancelled},
      {E::kDeadline, absl::StatusCode::kDeadlineExceeded}, {E::kPeerGone, absl::StatusCode::kUnavailable},
      {E::kNoAnswer, absl::StatusCode::kUnavailable},      {E::kOutboxFull, absl::StatusCode::kAborted},
      {E::kAttemptsOver, absl::StatusCode::kUnavailable}};
  std::map<std::string, int> messages;
  for (const auto& [event, code] : codes) {
    Driver driver = in_state(S::kGranted);
    driver.on(event);
    EXPECT_EQ(driver.sender.status().code(), code);
    EXPECT_EQ(error_message(driver.sender.status()).find("encoder output 0 of request r: "), 0u);
    ++messages[error_message(driver.sender.status())];
  }
  EXPECT_EQ(messages.size(), codes.size()) << "each reason has its words";
}

// ---- Attempts

TEST(EcSender, ALostAttemptIsFollowedByTwoMore) {
  Driver driver = in_state(S::kSent);
  for (uint32_t attempt = 5; attempt <= 6; ++attempt) {
    EXPECT_EQ(driver.injection(EcVerdict::kGone), Actions{A::kSendMetadata});
    EXPECT_EQ(driver.sender.key().attempt, attempt);
    EXPECT_EQ(driver.sender.reservation(), 0u);
    EXPECT_EQ(driver.sender.bulk_address(), "");
    EXPECT_EQ(driver.allocation(EcVerdict::kAllocated, 78), Actions{A::kSendCache}) << "the rows are still there";
    EXPECT_EQ(driver.on(E::kSendDone), Actions{});
  }
  EXPECT_EQ(driver.injection(EcVerdict::kGone), (Actions{A::kSendCancel, A::kAnswer}));
  EXPECT_EQ(error_message(driver.sender.status()), "encoder output 0 of request r: not injected in 3 attempts");
}

TEST(EcSender, AnswersToOtherAttemptsMeanNothing) {
  Driver driver = in_state(S::kAnnounced);
  driver.allocation(EcVerdict::kGone);
  EXPECT_EQ(driver.allocation(EcVerdict::kAllocated, 5, 4), Actions{});
  EXPECT_EQ(driver.allocation(EcVerdict::kGone, 0, 4), Actions{});
  EXPECT_EQ(driver.injection(EcVerdict::kAllocated, 4), Actions{});
  EXPECT_EQ(driver.sender.state(), S::kAnnounced);
  EXPECT_EQ(driver.sender.reservation(), 0u);
  EXPECT_EQ(driver.sender.key().attempt, 5u);
}

// ---- Time

TEST(EcSender, SaysItsMessageAgainAfter200MillisecondsDoubling) {
  Driver driver = in_state(S::kAnnounced);
  TimePoint last = driver.now;
  for (const int expected : {200, 400, 800}) {
    EXPECT_EQ(driver.wait(), Actions{A::kSendMetadata});
    EXPECT_GE(driver.now - last, milliseconds(expected * 3 / 4));
    EXPECT_LE(driver.now - last, milliseconds(expected * 5 / 4));
    last = driver.now;
  }
  EXPECT_EQ(driver.wait(), (Actions{A::kSendCancel, A::kAnswer})) << "three unanswered: the peer has gone";
  EXPECT_EQ(driver.sender.status().code(), absl::StatusCode::kUnavailable);
}

TEST(EcSender, AnAnswerProvesThatThePeerLives) {
  Driver driver = in_state(S::kAnnounced);
  TimePoint last = driver.now;
  Duration longest{};
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(driver.wait(), Actions{A::kSendMetadata});
    longest = driver.now - last;
    last = driver.now;
    EXPECT_EQ(driver.allocation(EcVerdict::kBusy), Actions{});
  }
  EXPECT_GE(longest, milliseconds(3750)) << "doubled to 5 s, less the jitter";
  EXPECT_LE(longest, milliseconds(6250));
}

TEST(EcSender, AnAnswerThatFollowsByItselfIsWaitedFor) {
  Driver driver = in_state(S::kAnnounced);
  EXPECT_EQ(driver.allocation(EcVerdict::kWait), Actions{});
  EXPECT_GE(driver.sender.next_time() - driver.now, milliseconds(3750));
  EXPECT_LE(driver.sender.next_time() - driver.now, milliseconds(6250));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(driver.wait(), Actions{A::kSendMetadata});
  EXPECT_EQ(driver.wait().back(), A::kAnswer) << "unanswered three times, again";
}

// A short lease shortens the intervals: three messages at least in a lease.
TEST(EcSender, AWaitingSenderRenewsItsLease) {
  EcTimes times;
  times.lease = seconds(6);
  Driver driver(1, times);
  driver.on(E::kStart);
  driver.allocation(EcVerdict::kWait);
  EXPECT_LE(driver.sender.next_time() - driver.now, milliseconds(2500));
}

TEST(EcSender, AGrantThatWaitsForItsEncodeIsRenewed) {
  Driver driver = in_state(S::kGranted);
  for (int i = 0; i < 5; ++i) {
    const TimePoint last = driver.now;
    EXPECT_EQ(driver.wait(), Actions{A::kSendMetadata});
    EXPECT_EQ(driver.now - last, seconds(10)) << "a third of the lease";
    EXPECT_EQ(driver.allocation(EcVerdict::kAllocated, 77), Actions{});
  }
  driver.wait();
  const TimePoint asked = driver.now;
  EXPECT_EQ(driver.wait(), Actions{A::kSendMetadata});
  EXPECT_LE(driver.now - asked, milliseconds(500)) << "not answered";
}

TEST(EcSender, AsksWhatBecameOfItsBytesAndSendsThemAgain) {
  Driver driver = in_state(S::kSent);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(driver.wait(), Actions{A::kSendQuery});
    EXPECT_EQ(driver.allocation(EcVerdict::kAllocated, 77), Actions{});
  }
  driver.wait();
  EXPECT_EQ(driver.allocation(EcVerdict::kAllocated, 79), Actions{A::kSendCache}) << "bytes are missing";
  EXPECT_EQ(driver.sender.reservation(), 79u);
  EXPECT_EQ(driver.on(E::kSendDone), Actions{});
  EXPECT_EQ(driver.wait(), Actions{A::kSendQuery});
  EXPECT_EQ(driver.allocation(EcVerdict::kAllocated, 79), Actions{}) << "counted from the beginning";
}

TEST(EcSender, ASendingThatStandsStillIsGivenUp) {
  Driver driver = in_state(S::kSending);
  driver.now += seconds(29);
  EXPECT_EQ(driver.on(E::kTime), Actions{});
  EXPECT_EQ(driver.on(E::kSendProgress), Actions{});
  driver.now += seconds(29);
  EXPECT_EQ(driver.on(E::kTime), Actions{});
  driver.now += seconds(1);
  EXPECT_EQ(driver.on(E::kTime), (Actions{A::kStopSending, A::kSendMetadata}));
  EXPECT_EQ(driver.sender.key().attempt, 5u);
}

TEST(EcSender, TheDeadlineEndsEveryState) {
  for (const S state : {S::kQueued, S::kAnnounced, S::kGranted, S::kSending, S::kSent}) {
    Driver driver = in_state(state);
    driver.now = kStart + seconds(1000);
    EXPECT_EQ(driver.on(E::kTime).back(), A::kAnswer);
    EXPECT_EQ(driver.sender.status().code(), absl::StatusCode::kDeadlineExceeded);
  }
}

TEST(EcSender, TravelsWithTheTimeThatIsLeft) {
  Driver driver;
  EXPECT_EQ(driver.sender.meta(kStart + seconds(400)).time_left, seconds(600));
  EXPECT_EQ(driver.sender.meta(kStart + seconds(2000)).time_left, Duration::zero());
  EXPECT_EQ(driver.sender.meta(kStart).digest, meta().digest);
}

TEST(EcSender, DoesNotCountSilenceWhileThePathIsAway) {
  Driver driver = in_state(S::kAnnounced);
  driver.wait();
  driver.wait();
  driver.wait();
  EXPECT_EQ(driver.on(E::kPathAway), Actions{});
  EXPECT_EQ(driver.sender.next_time(), kStart + seconds(1000)) << "the deadline alone";
  driver.now += seconds(100);
  EXPECT_EQ(driver.on(E::kTime), Actions{});
  EXPECT_EQ(driver.on(E::kPathBack), Actions{});
  EXPECT_EQ(driver.sender.next_time(), driver.now) << "said again at once";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(driver.wait(), Actions{A::kSendMetadata});
  EXPECT_EQ(driver.on(E::kPathBack), Actions{}) << "it was not away";
  EXPECT_GT(driver.sender.next_time(), driver.now);
  // What has nothing to say again says nothing.
  Driver sending = in_state(S::kSending);
  sending.on(E::kPathAway);
  sending.on(E::kPathBack);
  EXPECT_EQ(sending.sender.next_time(), sending.now + seconds(30));
}

TEST(EcSender, SeedsJitter) {
  std::map<TimePoint, int> times;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    Driver driver(seed);
    driver.on(E::kStart);
    ++times[driver.sender.next_time()];
    Driver same(seed);
    same.on(E::kStart);
    EXPECT_EQ(same.sender.next_time(), driver.sender.next_time());
  }
  EXPECT_GT(times.size(), 24u);
}

}  // namespace
}  // namespace transept
