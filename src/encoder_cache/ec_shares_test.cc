// The receiver's table and peers that announce without end: what each may have, and that others overtake it then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/content_digest_testing.h"
#include "encoder_cache/ec_receiver_table.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const InstanceId kE{"e", 1}, kOtherE{"f", 2}, kP{"p", 3};

EcMeta meta(const std::string& request, uint32_t input, uint64_t content, int32_t positions) {
  EcMeta meta;
  meta.key = {request, input, 0};
  meta.digest = testing::digest_of(content);
  meta.num_positions = positions;
  meta.width = 2;
  meta.time_left = std::chrono::seconds(1000);
  return meta;
}

// A table over 10 slots.
class EcSharesTest : public ::testing::Test {
 protected:
  void SetUp() override { make({}); }

  void make(EcReceiverTable::Options options) {
    BlockSpaceManager::Options pool;
    pool.specs = {{TableOwner::kSequence}, {TableOwner::kItem, 1}};
    pool.num_device_blocks = pool.max_reserved_blocks = 10;
    pool.keep_unused_items = true;
    pool.watermark = 0;
    blocks_ = std::make_unique<BlockSpaceManager>(pool);
    cache_ = std::make_unique<EncoderCacheManager>(*blocks_, 1);
    options.widths = {2};
    table_ = std::make_unique<EcReceiverTable>(*cache_, options, [this] { return next_secret_++; });
  }
  // What the table put out: "wait f z.0", in order.
  std::string said() {
    EXPECT_TRUE(table_->check_invariants().ok()) << table_->check_invariants();
    std::string all;
    for (const EcReceiverOutput& output : out_) {
      if (output.kind != EcReceiverOutput::Kind::kAllocation) continue;
      const char* const verdicts[] = {"allocated", "hit", "wait", "never", "incompatible", "busy", "gone"};
      all += str_cat(all.empty() ? "" : "; ", verdicts[static_cast<size_t>(output.verdict)], " ", output.to.name, " ",
                     output.key.request_id, ".", output.key.input_id);
    }
    out_.clear();
    return all;
  }
  std::string announce(const EcMeta& meta, const InstanceId& from = kE, bool is_asked = false) {
    table_->on_metadata(from, meta, now_, out_, is_asked);
    return said();
  }
  void cancel(const EcKey& key, const InstanceId& from = kE) { table_->on_cancel(from, key, now_, out_), said(); }
  void complete(uint64_t reservation) { table_->on_complete(reservation, now_, out_), said(); }
  void let_go(uint64_t reservation) { table_->on_sink_closed(reservation, now_, out_), said(); }
  std::string give_room() { return table_->allocate_waiting(now_, 64, out_), said(); }
  void use(const std::string& request) {
    EXPECT_TRUE(table_->claim(request, 1, now_, out_)) << request;
    table_->consume({request, 0}, now_);
  }

  std::unique_ptr<BlockSpaceManager> blocks_;
  std::unique_ptr<EncoderCacheManager> cache_;
  std::unique_ptr<EcReceiverTable> table_;
  EcReceiverTable::Outputs out_;
  TimePoint now_{};
  uint64_t next_secret_ = 0;  // which is no reservation
};

// Of 10 slots "e" has 4 when it has its share: another 2 would be more than the 4 that would be left.
TEST_F(EcSharesTest, APeerThatAnnouncesWithoutEndLeavesRoomToOthers) {
  EXPECT_EQ(announce(meta("o", 0, 90, 1), kOtherE), "allocated f o.0");
  complete(1);
  use("o");
  for (int i = 0; i < 1000; ++i) announce(meta(str_cat("flood-", i), 0, 100 + i, 2));
  EXPECT_EQ(cache_->num_unwritten_slots(), 4);
  EXPECT_EQ(table_->num_waiting(), 512u) << "half of the places";
  EXPECT_EQ(table_->stats().num_ended_by(EcOutcome::kBusy), 1000 - 2 - 512);
  // Others have room at once, in order of arrival, until they have what they may.
  EXPECT_EQ(announce(meta("x", 0, 1, 2), kOtherE), "allocated f x.0");
  EXPECT_EQ(announce(meta("y", 0, 2, 3), kP), "allocated p y.0");
  EXPECT_EQ(announce(meta("z", 0, 3, 2), kOtherE), "wait f z.0") << "one slot is free";
  EXPECT_TRUE(table_->is_held_back({"z", 0}));
  EXPECT_TRUE(table_->is_held_back({"flood-900", 0}) || table_->find_receiver({"flood-900", 0}) == nullptr);
  EXPECT_EQ(give_room(), "");
  // Rows that are here count for nobody.
  complete(4);
  complete(5);
  use("x");
  use("y");
  EXPECT_EQ(give_room(), "allocated f z.0") << "before all that came long before";
  // Each of its transfers that ends makes room for its next.
  complete(2);
  EXPECT_EQ(give_room(), "");
  use("flood-0");
  EXPECT_THAT(give_room(), HasSubstr("allocated e flood-2.0"));
}

TEST_F(EcSharesTest, APeerThatAnnouncesWithoutEndLeavesTransfersToOthers) {
  EcReceiverTable::Options options;
  options.max_transfers = 8;
  make(options);
  announce(meta("o", 0, 90, 1), kOtherE);
  for (uint32_t i = 0; i < 100; ++i) announce(meta("flood", i, 1, 1));
  EXPECT_EQ(table_->num_transfers(), 5u) << "that of the other one, and four";
  EXPECT_THAT(announce(meta("x", 0, 2, 1), kOtherE), Not(HasSubstr("busy")));
}

// Also where the flood comes under the name of the peer that was asked.
TEST_F(EcSharesTest, WhatWasAskedForHasRoomBesideAFlood) {
  const auto announce_asked = [&](const EcMeta& meta, const InstanceId& from) { return announce(meta, from, true); };
  announce_asked(meta("own", 0, 90, 5), kE);
  announce_asked(meta("own", 1, 91, 5), kOtherE);
  EXPECT_EQ(cache_->num_unwritten_slots(), 10) << "they count as one peer, so all room is theirs";
  cancel({"own", 0, 0});
  cancel({"own", 1, 0}, kOtherE);
  let_go(1);
  let_go(2);
  for (int i = 0; i < 1000; ++i) announce(meta(str_cat("flood-", i), 0, 100 + i, 2));
  EXPECT_EQ(cache_->num_unwritten_slots(), 4);
  EXPECT_THAT(announce_asked(meta("own", 2, 92, 3), kE), HasSubstr("allocated e own.2"));
}

TEST_F(EcSharesTest, APeerWithoutOthersHasAllRoom) {
  announce(meta("a", 0, 1, 5));
  EXPECT_THAT(announce(meta("b", 0, 2, 5)), HasSubstr("allocated"));
  EXPECT_EQ(announce(meta("c", 0, 3, 5), kOtherE), "wait f c.0");
  EXPECT_EQ(announce(meta("d", 0, 4, 5)), "wait e d.0");
  cancel({"a", 0, 0});
  let_go(1);
  EXPECT_EQ(give_room(), "allocated f c.0");
}

}  // namespace
}  // namespace transept
