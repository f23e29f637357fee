// What both tables count of transfers whose ends are known, and the histograms of their times.
#include "encoder_cache/ec_stats.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "base/content_digest_testing.h"
#include "encoder_cache/ec_receiver_table.h"
#include "encoder_cache/ec_sender_table.h"

namespace transept {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using V = EcVerdict;

const InstanceId kE{"e", 1}, kP{"p", 3};

EcMeta meta(const std::string& request, uint64_t content, int32_t positions) {
  EcMeta meta;
  meta.key = {request, 0, 0};
  meta.digest = testing::digest_of(content);
  meta.num_positions = positions;
  meta.width = 2;
  meta.time_left = seconds(1000);
  return meta;
}

int64_t num_ended(const EcStats& stats) {
  return std::accumulate(stats.num_ended.begin(), stats.num_ended.end(), int64_t{0});
}

TEST(EcHistogram, CountsByUpperBounds) {
  EcHistogram histogram;
  histogram.observe(milliseconds(1));  // a bound: it is in that bucket
  histogram.observe(milliseconds(2));
  histogram.observe(seconds(1000));
  histogram.observe(-seconds(1));
  EXPECT_EQ(histogram.count(), 4);
  EXPECT_EQ(histogram.counts[0], 1) << "a clock that went back";
  EXPECT_EQ(EcHistogram::kBounds[1], 0.001);
  EXPECT_EQ(histogram.counts[1], 1);
  EXPECT_EQ(histogram.counts[2], 1);
  EXPECT_EQ(histogram.counts.back(), 1);
  EXPECT_DOUBLE_EQ(histogram.sum, 1000.003);
  EcHistogram sum = histogram;
  sum.add(histogram);
  EXPECT_EQ(sum.count(), 8);
  EXPECT_DOUBLE_EQ(sum.sum, 2000.006);
  EXPECT_TRUE(std::ranges::is_sorted(EcHistogram::kBounds));
}

TEST(EcStats, AddsEveryFigure) {
  EcStats one;
  for (size_t i = 0; i < kNumEcOutcomes; ++i) one.num_ended[i] = static_cast<int64_t>(i) + 1;
  for (EcHistogram& each : one.seconds) each.observe(seconds(1));
  int64_t* const figures[] = {
      &one.num_bytes,     &one.num_retries, &one.num_expired,        &one.num_hits,       &one.num_waiting_alloc,
      &one.num_transfers, &one.num_slots,   &one.num_reserved_slots, &one.num_used_slots, &one.num_dropped_messages};
  static_assert(sizeof(EcStats) == sizeof(EcStats::num_ended) + sizeof(EcStats::seconds) + 10 * sizeof(int64_t));
  for (int64_t i = 0; i < 10; ++i) *figures[i] = 10 + i;
  EcStats sum = one;
  sum.add(one);
  for (size_t i = 0; i < kNumEcOutcomes; ++i) EXPECT_EQ(sum.num_ended[i], 2 * one.num_ended[i]);
  for (const EcHistogram& each : sum.seconds) EXPECT_EQ(each.count(), 2);
  EXPECT_EQ(sum.num_bytes, 20);
  EXPECT_EQ(sum.num_retries, 22);
  EXPECT_EQ(sum.num_expired, 24);
  EXPECT_EQ(sum.num_hits, 26);
  EXPECT_EQ(sum.num_waiting_alloc, 28);
  EXPECT_EQ(sum.num_transfers, 30);
  EXPECT_EQ(sum.num_slots, 32);
  EXPECT_EQ(sum.num_reserved_slots, 34);
  EXPECT_EQ(sum.num_used_slots, 36);
  EXPECT_EQ(sum.num_dropped_messages, 38);
}

// ---- The sender's side

class SenderCounts : public ::testing::Test {
 protected:
  void add(const EcMeta& meta) { ASSERT_TRUE(table_.add(kP, meta, now_, out_).ok()); }
  void say(const std::string& request, V verdict, uint64_t reservation = 0) {
    table_.on_allocation(kP, {{request, 0, 0}, verdict, reservation, reservation > 0 ? "b" : ""}, now_, out_);
  }
  void transport(const std::string& request, EcSenderEvent event) {
    table_.on_transport(event, {request, 0, 0}, now_, out_);
  }
  void inject(const std::string& request, V verdict = V::kAllocated) {
    table_.on_injection(kP, {{request, 0, 0}, verdict}, now_, out_);
  }
  const EcStats& stats() const { return table_.stats(); }
  int64_t count(EcPhase phase) const { return stats().seconds_of(phase).count(); }
  double sum(EcPhase phase) const { return stats().seconds_of(phase).sum; }

  EcSenderTable table_{{.times = {}, .max_transfers = 9, .seed = 5}};
  EcSenderTable::Outputs out_;
  TimePoint now_{};
};

TEST_F(SenderCounts, TheFourStepsAndTheirTimes) {
  add(meta("r", 1, 4));
  now_ += milliseconds(10);
  say("r", V::kAllocated, 7);
  now_ += seconds(1);
  table_.on_encoded({"r", 0}, now_, out_);
  now_ += milliseconds(20);
  EXPECT_EQ(stats().num_bytes, 0);
  transport("r", EcSenderEvent::kSendDone);
  now_ += milliseconds(40);
  inject("r");
  EXPECT_EQ(stats().num_ended_by(EcOutcome::kInjected), 1);
  EXPECT_EQ(num_ended(stats()), 1);
  EXPECT_EQ(stats().num_bytes, 4 * 2 * 4) << "positions, width, float32";
  EXPECT_EQ(stats().num_retries, 0);
  EXPECT_EQ(count(EcPhase::kAnnounce), 1);
  EXPECT_DOUBLE_EQ(sum(EcPhase::kAnnounce), 0.01);
  EXPECT_EQ(count(EcPhase::kSend), 1);
  EXPECT_DOUBLE_EQ(sum(EcPhase::kSend), 0.02) << "not the wait for the encode";
  EXPECT_EQ(count(EcPhase::kInject), 1);
  EXPECT_DOUBLE_EQ(sum(EcPhase::kInject), 0.04);
}

TEST_F(SenderCounts, AGrantOfWhatIsEncodedAndAnInjectionBeforeTheTransportSpoke) {
  add(meta("r", 1, 4));
  table_.on_encoded({"r", 0}, now_, out_);
  now_ += milliseconds(10);
  say("r", V::kAllocated, 7);
  now_ += milliseconds(20);
  inject("r");
  EXPECT_DOUBLE_EQ(sum(EcPhase::kAnnounce), 0.01);
  EXPECT_DOUBLE_EQ(sum(EcPhase::kSend), 0.02);
  EXPECT_EQ(count(EcPhase::kInject), 0);
  EXPECT_EQ(stats().num_bytes, 32);
}

TEST_F(SenderCounts, EachEndHasItsVerdict) {
  const auto ends = [&](EcOutcome outcome, auto act) {
    const EcStats before = stats();
    add(meta("x", 1, 4));
    act();
    EXPECT_EQ(table_.num_transfers(), 0u) << name(outcome);
    EXPECT_EQ(stats().num_ended_by(outcome), before.num_ended_by(outcome) + 1) << name(outcome);
    EXPECT_EQ(num_ended(stats()), num_ended(before) + 1) << name(outcome);
  };
  ends(EcOutcome::kHit, [&] { say("x", V::kHit); });
  ends(EcOutcome::kNever, [&] { say("x", V::kNever); });
  ends(EcOutcome::kIncompatible, [&] { say("x", V::kIncompatible); });
  ends(EcOutcome::kBusy, [&] { transport("x", EcSenderEvent::kOutboxFull); });
  ends(EcOutcome::kGone, [&] { table_.on_peer_gone(kP, now_, out_); });
  ends(EcOutcome::kCancelled, [&] { table_.on_cancel(kP, {"x", 0, 0}, now_, out_); });
  ends(EcOutcome::kCancelled, [&] { table_.abort({"x", 0}, now_, out_); });
  EXPECT_EQ(stats().num_expired, 0);
  EXPECT_EQ(stats().num_bytes, 0);
  EXPECT_EQ(count(EcPhase::kAnnounce), 1) << "the hit";
  ends(EcOutcome::kExpired, [&] { table_.on_time(now_ += seconds(1000), out_); });
  EXPECT_EQ(stats().num_expired, 1);
}

TEST_F(SenderCounts, RetriesAreWhatIsSaidAndSentAgain) {
  add(meta("r", 1, 4));
  table_.on_time(now_ = table_.next_time(), out_);
  EXPECT_EQ(stats().num_retries, 1) << "announced again";
  table_.on_encoded({"r", 0}, now_, out_);
  say("r", V::kAllocated, 7);
  transport("r", EcSenderEvent::kSendDone);
  EXPECT_EQ(stats().num_retries, 1);
  table_.on_time(now_ = table_.next_time(), out_);
  EXPECT_EQ(stats().num_retries, 2) << "asked";
  for (int i = 0; i < 3; ++i) say("r", V::kAllocated, 7);  // that bytes are missing
  EXPECT_EQ(stats().num_retries, 3) << "sent again";
  transport("r", EcSenderEvent::kSendDone);
  say("r", V::kGone);
  EXPECT_EQ(stats().num_retries, 4) << "a new attempt";
  EXPECT_EQ(stats().num_bytes, 64) << "twice";
  EXPECT_EQ(num_ended(stats()), 0);
}

// ---- The receiver's side

class ReceiverCounts : public ::testing::Test {
 protected:
  ReceiverCounts() {
    BlockSpaceManager::Options pool;
    pool.specs = {{TableOwner::kSequence}, {TableOwner::kItem, 2}};  // blocks of two positions
    pool.num_device_blocks = pool.max_reserved_blocks = 5;
    pool.keep_unused_items = true;
    pool.watermark = 0;
    blocks_ = std::make_unique<BlockSpaceManager>(pool);
    cache_ = std::make_unique<EncoderCacheManager>(*blocks_, 1);
    EcReceiverTable::Options options;
    options.widths = {2};
    options.bulk_address = "b";
    options.max_waiting = 4;  // a peer may have half of them
    table_ = std::make_unique<EcReceiverTable>(*cache_, options, [this] { return next_secret_++; });
  }

  void announce(const EcMeta& meta) { table_->on_metadata(kE, meta, now_, out_); }
  void complete(uint64_t reservation) { table_->on_complete(reservation, now_, out_); }
  EcStats stats() const { return table_->stats(); }
  void expect_slots(int64_t reserved, int64_t used) {
    EXPECT_EQ(stats().num_slots, 10);
    EXPECT_EQ(stats().num_reserved_slots, reserved);
    EXPECT_EQ(stats().num_used_slots, used);
  }

  std::unique_ptr<BlockSpaceManager> blocks_;
  std::unique_ptr<EncoderCacheManager> cache_;
  std::unique_ptr<EcReceiverTable> table_;
  EcReceiverTable::Outputs out_;
  TimePoint now_{};
  uint64_t next_secret_ = 1;
};

TEST_F(ReceiverCounts, TheWayOfAnOutput) {
  expect_slots(0, 0);
  announce(meta("r", 1, 3));
  expect_slots(4, 0);
  EXPECT_EQ(stats().num_transfers, 1);
  complete(1);
  expect_slots(0, 4);
  EXPECT_EQ(stats().num_bytes, 24);
  EXPECT_EQ(stats().num_ended_by(EcOutcome::kInjected), 1);
  now_ += milliseconds(30);
  EXPECT_TRUE(table_->claim("r", 1, now_, out_));
  EXPECT_TRUE(table_->claim("r", 1, now_ + seconds(9), out_)) << "again";
  EXPECT_EQ(stats().seconds_of(EcPhase::kClaim).count(), 1);
  EXPECT_DOUBLE_EQ(stats().seconds_of(EcPhase::kClaim).sum, 0.03);
  table_->consume({"r", 0}, now_);
  expect_slots(0, 0);
  EXPECT_EQ(stats().num_transfers, 0);
  EXPECT_EQ(stats().num_hits, 0);
  announce(meta("s", 1, 3));
  EXPECT_EQ(stats().num_hits, 1);
  EXPECT_EQ(stats().num_ended_by(EcOutcome::kHit), 1);
  EXPECT_EQ(stats().num_bytes, 24) << "nothing has come";
  expect_slots(0, 4);
  EXPECT_EQ(num_ended(stats()), 2);
}

TEST_F(ReceiverCounts, EachEndHasItsVerdict) {
  announce(meta("never", 2, 11));
  EXPECT_EQ(stats().num_ended_by(EcOutcome::kNever), 1);
  EcMeta other = meta("other", 3, 2);
  other.width = 3;
  announce(other);
  EXPECT_EQ(stats().num_ended_by(EcOutcome::kIncompatible), 1);
  announce(meta("r", 1, 10));
  announce(meta("waits", 4, 2));
  announce(meta("waits too", 5, 2));
  EXPECT_EQ(stats().num_waiting_alloc, 2);
  announce(meta("one too many", 6, 2));
  EXPECT_EQ(stats().num_ended_by(EcOutcome::kBusy), 1);
  table_->on_cancel(kE, {"waits", 0, 0}, now_, out_);
  EXPECT_EQ(stats().num_ended_by(EcOutcome::kCancelled), 1);
  EXPECT_EQ(stats().num_waiting_alloc, 1);
  table_->abort("r", now_, out_);
  EXPECT_EQ(stats().num_ended_by(EcOutcome::kCancelled), 2);
  expect_slots(10, 0);
  table_->on_sink_closed(1, now_, out_);
  expect_slots(0, 0);
  EXPECT_EQ(num_ended(stats()), 5) << "one that closes has ended once";
  EXPECT_EQ(stats().num_expired, 0);
  table_->on_time(now_ += seconds(31), out_);
  EXPECT_EQ(stats().num_ended_by(EcOutcome::kExpired), 1) << "its sender was silent for a lease";
  EXPECT_EQ(stats().num_expired, 1);
  EXPECT_EQ(num_ended(stats()), 6);
}

TEST_F(ReceiverCounts, AnUnclaimedOutputExpiresThoughItWasInjected) {
  announce(meta("r", 1, 2));
  complete(1);
  table_->on_time(now_ += seconds(60), out_);
  EXPECT_EQ(stats().num_expired, 1);
  EXPECT_EQ(num_ended(stats()), 1);
  EXPECT_EQ(stats().num_ended_by(EcOutcome::kInjected), 1);
}

}  // namespace
}  // namespace transept
