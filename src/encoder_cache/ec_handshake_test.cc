// Both tables, without a network between them: what happens to a transfer, and what follows (the table of
// docs/decisions/0031-encoder-rows-by-wire.md), and what the tables themselves promise.
#include <gtest/gtest.h>

#include <memory>

#include "base/content_digest_testing.h"
#include "encoder_cache/ec_receiver_table.h"
#include "encoder_cache/ec_sender_table.h"

namespace transept {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = EcReceiverOutput::Kind;
using A = EcSenderAction;
using V = EcVerdict;

const InstanceId kE{"e", 1}, kOtherE{"f", 2}, kP{"p", 3};

// What a table put out, as words: "allocation kHit".
std::string text(const EcReceiverOutput& output) {
  const char* const verdicts[] = {"allocated", "hit", "wait", "never", "incompatible", "busy", "gone"};
  const std::string to =
      str_cat(" ", output.to.name, " ", output.key.request_id, ".", output.key.input_id, ".", output.key.attempt);
  const std::string verdict = verdicts[static_cast<size_t>(output.verdict)];
  switch (output.kind) {
    case Kind::kAllocation: return str_cat("allocation", to, " ", verdict);
    case Kind::kInjection: return str_cat("injection", to, " ", verdict);
    case Kind::kCancel: return str_cat("cancel", to);
    case Kind::kOpenSink: return str_cat("open ", output.reservation, " of ", output.num_bytes);
    case Kind::kCloseSink: return str_cat("close ", output.reservation);
    case Kind::kReady: return str_cat("ready ", output.key.request_id, ".", output.key.input_id);
  }
  return "";
}
std::string text(const EcSenderOutput& output) {
  const char* const actions[] = {"metadata", "query", "cancel", "cache", "stop", "answer"};
  std::string line = str_cat(actions[static_cast<size_t>(output.action)], " ", output.meta.key.request_id, ".",
                             output.meta.key.input_id, ".", output.meta.key.attempt);
  if (output.action == A::kSendCache) line += str_cat(" ", output.reservation, " ", output.bulk_address);
  if (output.action == A::kAnswer) line += str_cat(" ", absl::StatusCodeToString(output.status.code()));
  return line;
}
template <typename Outputs>
std::string lines(Outputs& outputs) {
  std::vector<std::string> texts;
  texts.reserve(outputs.size());
  for (const auto& output : outputs) texts.push_back(text(output));
  outputs.clear();
  return join(texts, "; ");
}

EcMeta meta(const std::string& request, uint32_t input, uint64_t content, int32_t positions, uint32_t attempt = 0) {
  EcMeta meta;
  meta.key = {request, input, attempt};
  meta.digest = testing::digest_of(content);
  meta.num_positions = positions;
  meta.width = 2;
  meta.time_left = seconds(1000);
  return meta;
}

// ---- The receiver's table

class EcReceiverTableTest : public ::testing::Test {
 protected:
  void SetUp() override { make({}); }
  void TearDown() override { check(); }

  void make(EcReceiverTable::Options options, std::vector<int32_t> widths = {2}) {
    BlockSpaceManager::Options pool;
    pool.specs = {{TableOwner::kSequence}, {TableOwner::kItem, 1}};
    pool.num_device_blocks = pool.max_reserved_blocks = 10;
    pool.keep_unused_items = true;
    pool.watermark = 0;
    blocks_ = std::make_unique<BlockSpaceManager>(pool);
    cache_ = std::make_unique<EncoderCacheManager>(*blocks_, 1);
    options.widths = std::move(widths);
    options.bulk_address = "tcp://p:1";
    table_ = std::make_unique<EcReceiverTable>(*cache_, options, [this] { return next_secret_++; });
  }
  void check() {
    EXPECT_TRUE(table_->check_invariants().ok()) << table_->check_invariants();
    EXPECT_TRUE(blocks_->check_invariants().ok()) << blocks_->check_invariants();
  }
  std::string said() {
    check();
    return lines(out_);
  }
  std::string announce(const EcMeta& meta, const InstanceId& from = kE) {
    table_->on_metadata(from, meta, now_, out_);
    return said();
  }
  std::string query(const EcKey& key, const InstanceId& from = kE) {
    return table_->on_query(from, key, now_, out_), said();
  }
  std::string cancel(const EcKey& key, const InstanceId& from = kE) {
    return table_->on_cancel(from, key, now_, out_), said();
  }
  std::string complete(uint64_t reservation) { return table_->on_complete(reservation, now_, out_), said(); }
  std::string let_go(uint64_t reservation) { return table_->on_sink_closed(reservation, now_, out_), said(); }
  std::string give_room(int32_t most = 64) { return table_->allocate_waiting(now_, most, out_), said(); }
  std::string abort(const std::string& request) { return table_->abort(request, now_, out_), said(); }
  std::string at(Duration time) {
    now_ = TimePoint{} + time;
    return table_->on_time(now_, out_), said();
  }
  bool claim(const std::string& request, int32_t inputs) { return table_->claim(request, inputs, now_, out_); }

  std::unique_ptr<BlockSpaceManager> blocks_;
  std::unique_ptr<EncoderCacheManager> cache_;
  std::unique_ptr<EcReceiverTable> table_;
  EcReceiverTable::Outputs out_;
  TimePoint now_{};
  uint64_t next_secret_ = 0;  // which is no reservation
};

TEST_F(EcReceiverTableTest, TheFourSteps) {
  EXPECT_EQ(announce(meta("r", 0, 1, 4)), "open 1 of 32; allocation e r.0.0 allocated");
  EXPECT_EQ(cache_->num_used_slots(), 4) << "room, before a byte is sent";
  table_->on_chunk(1, now_);
  EXPECT_EQ(table_->find_receiver({"r", 0})->state(), EcReceiverState::kReceiving);
  EXPECT_FALSE(claim("r", 1));
  EXPECT_EQ(complete(1), "injection e r.0.0 allocated; ready r.0");
  EXPECT_FALSE(claim("r", 2));
  EXPECT_TRUE(claim("r", 1));
  table_->consume({"r", 0}, now_);
  table_->consume({"r", 0}, now_);
  EXPECT_EQ(cache_->num_used_slots(), 0);
  EXPECT_EQ(announce(meta("s", 0, 1, 4)), "allocation e s.0.0 hit; ready s.0") << "kept, and found again";
}

TEST_F(EcReceiverTableTest, AnAllocationNamesItsReservationAndItsPlace) {
  table_->on_metadata(kE, meta("r", 0, 1, 4), now_, out_);
  ASSERT_EQ(out_.size(), 2u);
  EXPECT_EQ(out_[0].reservation, 1u);
  EXPECT_EQ(out_[1].reservation, 1u);
  EXPECT_EQ(out_[1].bulk_address, "tcp://p:1");
  EXPECT_EQ(out_[1].to, kE);
  out_.clear();
  announce(meta("r", 1, 2, 7));
  EXPECT_EQ(announce(meta("r", 1, 2, 7)), "allocation e r.1.0 wait");
  table_->on_query(kE, {"r", 1, 0}, now_, out_);
  EXPECT_EQ(out_.at(0).reservation, 0u);
  EXPECT_EQ(out_.at(0).bulk_address, "");
}

TEST_F(EcReceiverTableTest, Doubled) {
  announce(meta("r", 0, 1, 4));
  EXPECT_EQ(announce(meta("r", 0, 1, 4)), "allocation e r.0.0 allocated");
  EXPECT_EQ(cache_->num_used_slots(), 4);
  EXPECT_EQ(complete(1), "injection e r.0.0 allocated; ready r.0");
  EXPECT_EQ(complete(1), "");
  EXPECT_EQ(query({"r", 0, 0}), "injection e r.0.0 allocated");
  EXPECT_EQ(announce(meta("r", 0, 1, 4)), "allocation e r.0.0 hit");
}

TEST_F(EcReceiverTableTest, NotTaken) {
  EXPECT_EQ(announce(meta("r", 0, 1, 11)), "allocation e r.0.0 never");
  EcMeta other = meta("r", 0, 1, 4);
  other.model = testing::digest_of(1);
  EXPECT_EQ(announce(other), "allocation e r.0.0 incompatible");
  other = meta("r", 0, 1, 4);
  other.width = 3;
  EXPECT_EQ(announce(other), "allocation e r.0.0 incompatible");
  other = meta("r", 0, 1, 4);
  other.dtype = DType::kBFloat16;
  EXPECT_EQ(announce(other), "allocation e r.0.0 incompatible");
  EXPECT_EQ(query({"r", 0, 0}), "injection e r.0.0 gone");
  EXPECT_EQ(table_->num_transfers() + table_->num_tombstones(), 0u) << "nothing is kept of it";
}

// Items of two kinds, each with rows of its width.
TEST_F(EcReceiverTableTest, RowsOfTwoWidths) {
  make({}, {2, 5});
  EcMeta wide = meta("r", 1, 2, 4);
  wide.width = 5;
  announce(meta("r", 0, 1, 4));
  EXPECT_EQ(announce(wide), "open 2 of 80; allocation e r.1.0 allocated");
  wide.key.attempt = 1, wide.width = 2;
  EXPECT_EQ(announce(wide), "allocation e r.1.1 incompatible") << "one output has one width";
  wide.width = 3;
  wide.key.input_id = 2;
  EXPECT_EQ(announce(wide), "allocation e r.2.1 incompatible") << "no item has it";
}

TEST_F(EcReceiverTableTest, OneDigestWithTwoLengths) {
  announce(meta("r", 0, 1, 4));
  EXPECT_EQ(announce(meta("r", 0, 1, 5)), "allocation e r.0.0 incompatible");
  EXPECT_EQ(announce(meta("r", 0, 1, 5, 1)), "allocation e r.0.1 incompatible");
  EXPECT_EQ(announce(meta("r", 0, 2, 4)), "allocation e r.0.0 incompatible") << "another output";
  announce(meta("s", 0, 1, 5));
  EXPECT_EQ(announce(meta("t", 0, 1, 3)), "allocation e t.0.0 wait");
  EXPECT_EQ(complete(1), "injection e r.0.0 allocated; ready r.0");
  EXPECT_EQ(complete(2), "injection e s.0.0 incompatible") << "another was here first";
  EXPECT_EQ(cache_->num_used_slots(), 4);
  EXPECT_EQ(give_room(), "injection e t.0.0 incompatible");
  EXPECT_EQ(announce(meta("u", 0, 1, 6)), "allocation e u.0.0 incompatible");
  EXPECT_EQ(announce(meta("r", 0, 1, 4)), "allocation e r.0.0 hit") << "unharmed";
}

TEST_F(EcReceiverTableTest, RoomInOrderOfArrival) {
  announce(meta("a", 0, 1, 8));
  EXPECT_EQ(announce(meta("b", 0, 2, 5)), "allocation e b.0.0 wait");
  EXPECT_EQ(announce(meta("c", 0, 3, 1)), "allocation e c.0.0 wait") << "though it would fit";
  EXPECT_EQ(announce(meta("d", 0, 1, 8)), "allocation e d.0.0 wait");
  EXPECT_EQ(table_->num_waiting(), 3u);
  EXPECT_EQ(give_room(), "");
  complete(1);
  claim("a", 1);
  table_->consume({"a", 0}, now_);
  EXPECT_EQ(give_room(1), "open 2 of 40; allocation e b.0.0 allocated");
  EXPECT_EQ(give_room(), "open 3 of 8; allocation e c.0.0 allocated");
  EXPECT_EQ(table_->num_waiting(), 1u) << "the idle output had to go: no hit any more";
}

TEST_F(EcReceiverTableTest, AWaitingOneThatIsOverIsPassed) {
  announce(meta("a", 0, 1, 10));
  announce(meta("b", 0, 2, 10));
  announce(meta("c", 0, 3, 2));
  EXPECT_EQ(cancel({"b", 0, 0}), "");
  EXPECT_EQ(table_->num_waiting(), 1u);
  cancel({"a", 0, 0});
  EXPECT_EQ(let_go(1), "");
  EXPECT_EQ(give_room(), "open 2 of 16; allocation e c.0.0 allocated");
}

TEST_F(EcReceiverTableTest, AnOutputThatComesMeanwhileIsAHit) {
  announce(meta("a", 0, 1, 6));
  announce(meta("b", 0, 1, 6));
  EXPECT_EQ(table_->num_waiting(), 1u);
  complete(1);
  EXPECT_EQ(give_room(), "allocation e b.0.0 hit; ready b.0");
  EXPECT_EQ(cache_->num_used_slots(), 6);
}

TEST_F(EcReceiverTableTest, BusyWhenFull) {
  EcReceiverTable::Options options;
  options.max_waiting = 4;
  options.max_transfers = 4;
  make(options);
  announce(meta("a", 0, 1, 9));
  announce(meta("b", 0, 2, 5));
  announce(meta("c", 0, 3, 5));
  EXPECT_EQ(announce(meta("d", 0, 4, 5)), "allocation e d.0.0 busy");
  EXPECT_EQ(query({"d", 0, 0}), "injection e d.0.0 gone") << "it is not kept";
  EXPECT_EQ(announce(meta("c", 0, 3, 5)), "allocation e c.0.0 wait") << "those that are go on";
  abort("a");
  let_go(1);
  EXPECT_EQ(give_room(), "open 2 of 40; allocation e b.0.0 allocated; open 3 of 40; allocation e c.0.0 allocated");
  complete(2);
  EXPECT_EQ(announce(meta("e", 0, 2, 5)), "allocation e e.0.0 hit; ready e.0");
  EXPECT_EQ(announce(meta("f", 0, 2, 5)), "allocation e f.0.0 hit; ready f.0");
  EXPECT_EQ(table_->num_transfers(), 4u);
  EXPECT_EQ(announce(meta("g", 0, 2, 5)), "allocation e g.0.0 busy") << "a hit is kept, too";
}

// "a" has all room. Of 4 places "e" gets 2, then "f" gets 1, and one is left for a third peer; a peer that
// leaves gives its place back.
TEST_F(EcReceiverTableTest, APeerThatAnnouncesWithoutEndLeavesPlacesToOthers) {
  EcReceiverTable::Options options;
  options.max_waiting = 4;
  make(options);
  announce(meta("a", 0, 1, 9));
  EXPECT_EQ(announce(meta("b", 0, 2, 5)), "allocation e b.0.0 wait");
  EXPECT_EQ(announce(meta("c", 0, 3, 5)), "allocation e c.0.0 wait");
  EXPECT_EQ(announce(meta("d", 0, 4, 5)), "allocation e d.0.0 busy");
  EXPECT_EQ(announce(meta("d", 1, 5, 5), InstanceId{"e", 9}), "allocation e d.1.0 busy")
      << "a peer started again is itself";
  EXPECT_EQ(announce(meta("p", 0, 6, 5), kOtherE), "allocation f p.0.0 wait");
  EXPECT_EQ(announce(meta("q", 0, 7, 5), kOtherE), "allocation f q.0.0 busy");
  EXPECT_EQ(announce(meta("x", 0, 8, 5), kP), "allocation p x.0.0 wait");
  EXPECT_EQ(announce(meta("y", 0, 9, 5), InstanceId{"g", 4}), "allocation g y.0.0 busy") << "none is left";
  cancel({"b", 0, 0});
  cancel({"c", 0, 0});
  EXPECT_EQ(announce(meta("d", 2, 4, 5)), "allocation e d.2.0 wait");
  EXPECT_EQ(announce(meta("d", 3, 4, 5)), "allocation e d.3.0 busy");
  EXPECT_TRUE(table_->check_invariants().ok());
}

TEST_F(EcReceiverTableTest, MemoriesAreBounded) {
  EcReceiverTable::Options options;
  options.max_tombstones = 2;
  make(options);
  for (const char* request : {"a", "b", "c"}) cancel({request, 0, 0});
  EXPECT_EQ(table_->num_tombstones(), 2u);
  EXPECT_EQ(table_->find_receiver({"a", 0}), nullptr) << "the oldest";
  EXPECT_EQ(announce(meta("c", 0, 1, 1)), "allocation e c.0.0 gone");
  EXPECT_EQ(at(seconds(60)), "");
  EXPECT_EQ(table_->num_tombstones(), 0u);
  EXPECT_EQ(table_->next_time(), TimePoint::max());
}

TEST_F(EcReceiverTableTest, ReorderedCancel) {
  cancel({"r", 0, 0});
  EXPECT_EQ(announce(meta("r", 0, 1, 4)), "allocation e r.0.0 gone");
  EXPECT_EQ(announce(meta("r", 0, 1, 4, 1)), "open 1 of 32; allocation e r.0.1 allocated")
      << "a later attempt begins anew";
  EXPECT_EQ(cancel({"r", 0, 0}), "");
  EXPECT_EQ(cancel({"r", 0, 1}, kOtherE), "");
  EXPECT_EQ(table_->find_receiver({"r", 0})->state(), EcReceiverState::kReserved) << "of others";
}

TEST_F(EcReceiverTableTest, LateBytesAreGone) {
  announce(meta("r", 0, 1, 4));
  EXPECT_EQ(at(seconds(29)), "");
  table_->on_chunk(1, now_);
  EXPECT_EQ(at(seconds(58)), "");
  EXPECT_EQ(at(seconds(59)), "close 1");
  EXPECT_EQ(cache_->num_used_slots(), 4) << "held until the sink has let go";
  EXPECT_EQ(complete(1), "") << "too late";
  EXPECT_EQ(query({"r", 0, 0}), "injection e r.0.0 gone");
  EXPECT_EQ(let_go(1), "");
  EXPECT_EQ(let_go(1), "");
  EXPECT_EQ(cache_->num_used_slots(), 0);
  EXPECT_EQ(announce(meta("r", 0, 1, 4)), "allocation e r.0.0 gone");
  EXPECT_EQ(announce(meta("r", 0, 1, 4, 1)), "open 2 of 32; allocation e r.0.1 allocated");
}

TEST_F(EcReceiverTableTest, AnotherSenderTakesTheRoomOver) {
  announce(meta("r", 0, 1, 8));
  announce(meta("s", 0, 2, 8));
  EXPECT_EQ(announce(meta("r", 0, 1, 8, 1), kOtherE), "close 1; allocation f r.0.1 wait");
  EXPECT_EQ(give_room(), "") << "s does not get it";
  EXPECT_EQ(announce(meta("r", 0, 1, 8)), "allocation e r.0.0 gone");
  EXPECT_EQ(let_go(1), "open 2 of 64; allocation f r.0.1 allocated") << "another secret";
  EXPECT_EQ(query({"r", 0, 0}), "injection e r.0.0 gone");
  EXPECT_EQ(complete(2), "injection f r.0.1 allocated; ready r.0");
}

TEST_F(EcReceiverTableTest, ASecretIsNeitherZeroNorOpen) {
  announce(meta("r", 0, 1, 1));
  next_secret_ = 0;
  EXPECT_EQ(announce(meta("r", 1, 2, 1)), "open 2 of 8; allocation e r.1.0 allocated");
}

TEST_F(EcReceiverTableTest, ClientGone) {
  announce(meta("r", 0, 1, 2));
  announce(meta("r", 1, 2, 2));
  announce(meta("q", 0, 3, 1));
  announce(meta("rr", 0, 4, 1));
  complete(2);
  announce(meta("r", 2, 5, 9));
  EXPECT_EQ(table_->num_waiting(), 1u);
  EXPECT_EQ(abort("r"), "close 1; cancel e r.0.0; cancel e r.2.0");
  EXPECT_EQ(cache_->num_used_slots(), 4) << "r.0's, until its sink has let go, and those of others";
  EXPECT_EQ(abort("r"), "");
  let_go(1);
  EXPECT_EQ(cache_->num_used_slots(), 2);
  EXPECT_EQ(table_->num_transfers(), 2u);
}

TEST_F(EcReceiverTableTest, AClaimIsOfTheInputsThatItCounts) {
  for (uint32_t input = 0; input < 3; ++input) announce(meta("r", input, input, 2));
  for (const uint64_t reservation : {1, 2}) complete(reservation);
  EXPECT_TRUE(claim("r", 1));
  EXPECT_EQ(table_->find_receiver({"r", 0})->state(), EcReceiverState::kClaimed);
  EXPECT_EQ(table_->find_receiver({"r", 1})->state(), EcReceiverState::kInjected);
  EXPECT_FALSE(claim("r", 3));
  EXPECT_EQ(table_->find_receiver({"r", 1})->state(), EcReceiverState::kInjected) << "all, or none";
}

TEST_F(EcReceiverTableTest, UnclaimedIsGivenUp) {
  announce(meta("r", 0, 1, 4));
  complete(1);
  EXPECT_EQ(at(seconds(59)), "");
  EXPECT_EQ(cache_->num_used_slots(), 4);
  EXPECT_EQ(at(seconds(60)), "");
  EXPECT_EQ(cache_->num_used_slots(), 0);
  EXPECT_FALSE(claim("r", 1));
  EXPECT_EQ(cache_->num_freeable_slots(), 10);
  EXPECT_EQ(cache_->num_free_slots(), 6) << "not gone: unused";
}

// The request comes first, and finds an equal output of another.
TEST_F(EcReceiverTableTest, UsesThatTheRequestBegan) {
  announce(meta("a", 0, 1, 4));
  complete(1);
  EXPECT_TRUE(cache_->check_and_update_cache({{"r", 0}, testing::digest_of(1), 4}));
  EXPECT_EQ(announce(meta("r", 0, 1, 4)), "allocation e r.0.0 hit") << "nothing to keep";
  EXPECT_EQ(table_->find_receiver({"r", 0}), nullptr);
  EXPECT_TRUE(claim("r", 1));
  EXPECT_EQ(abort("a"), "");
  EXPECT_EQ(cache_->num_used_slots(), 4);
  table_->consume({"r", 0}, now_);
  EXPECT_EQ(cache_->num_uses(), 0);
  // While its announcement waits.
  announce(meta("b", 0, 2, 8));
  announce(meta("s", 0, 2, 8));
  complete(2);
  EXPECT_TRUE(cache_->check_and_update_cache({{"s", 0}, testing::digest_of(2), 8}));
  EXPECT_TRUE(claim("s", 1));
  EXPECT_EQ(said(), "allocation e s.0.0 hit; ready s.0");
  EXPECT_EQ(at(seconds(500)), "") << "claimed: no time ends it";
  EXPECT_TRUE(cache_->has_use({"s", 0}));
  EXPECT_TRUE(cache_->check_and_update_cache({{"s", 1}, testing::digest_of(2), 8}));
  EXPECT_EQ(abort("s"), "");
  EXPECT_EQ(cache_->num_uses(), 0);
}

// ---- The sender's table

class EcSenderTableTest : public ::testing::Test {
 protected:
  std::string said() { return lines(out_); }
  std::string add(const EcMeta& meta) {
    const Status status = table_.add(kP, meta, now_, out_);
    return status.ok() ? said() : error_message(status);
  }
  std::string allocate(const EcKey& key, V verdict, uint64_t reservation = 0, const InstanceId& from = kP) {
    return table_.on_allocation(from, {key, verdict, reservation, reservation > 0 ? "tcp://p:1" : ""}, now_, out_),
           said();
  }
  std::string inject(const EcKey& key, V verdict, const InstanceId& from = kP) {
    return table_.on_injection(from, {key, verdict}, now_, out_), said();
  }
  std::string encoded(const EcInput& input) { return table_.on_encoded(input, now_, out_), said(); }
  std::string transport(EcSenderEvent event, const EcKey& key) {
    return table_.on_transport(event, key, now_, out_), said();
  }
  std::string wait() {
    now_ = table_.next_time();
    return table_.on_time(now_, out_), said();
  }

  EcSenderTable table_{{.times = {}, .max_transfers = 3, .seed = 5}};
  EcSenderTable::Outputs out_;
  TimePoint now_{};
};

TEST_F(EcSenderTableTest, TheFourSteps) {
  EXPECT_EQ(add(meta("r", 0, 1, 4)), "metadata r.0.0");
  EXPECT_EQ(encoded({"r", 0}), "");
  EXPECT_EQ(allocate({"r", 0, 0}, V::kAllocated, 7), "cache r.0.0 7 tcp://p:1");
  EXPECT_EQ(transport(EcSenderEvent::kSendDone, {"r", 0, 0}), "");
  EXPECT_EQ(inject({"r", 0, 0}, V::kAllocated), "answer r.0.0 OK");
  EXPECT_EQ(table_.num_transfers(), 0u);
  EXPECT_EQ(table_.next_time(), TimePoint::max());
  EXPECT_EQ(inject({"r", 0, 0}, V::kAllocated), "");
  EXPECT_EQ(allocate({"r", 0, 0}, V::kAllocated, 7), "");
  EXPECT_EQ(encoded({"r", 0}), "");
  EXPECT_EQ(transport(EcSenderEvent::kSendDone, {"r", 0, 0}), "");
}

TEST_F(EcSenderTableTest, MetadataIsWhole) {
  EcMeta sent = meta("r", 0, 1, 4);
  ASSERT_TRUE(table_.add(kP, sent, now_, out_).ok());
  EXPECT_EQ(out_.at(0).meta, sent);
  EXPECT_EQ(out_.at(0).to, kP);
  out_.clear();
  now_ = table_.next_time();
  table_.on_time(now_, out_);
  sent.time_left -= now_ - TimePoint{};
  EXPECT_EQ(out_.at(0).meta, sent);
}

TEST_F(EcSenderTableTest, IsBoundedAndKnowsWhatIsInFlight) {
  add(meta("r", 0, 1, 4));
  EXPECT_EQ(table_.add(kP, meta("r", 0, 1, 4), now_, out_).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(add(meta("r", 0, 1, 4, 1)), "encoder output 0 of request r: is in flight");
  add(meta("r", 1, 2, 4));
  add(meta("s", 0, 3, 4));
  EXPECT_EQ(table_.add(kP, meta("t", 0, 4, 4), now_, out_).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(add(meta("t", 0, 4, 4)), "encoder output 0 of request t: 3 outputs are in flight");
  EXPECT_EQ(table_.num_transfers(), 3u);
}

TEST_F(EcSenderTableTest, AbortsAnInputAlone) {
  add(meta("r", 0, 1, 4));
  add(meta("r", 1, 2, 4));
  add(meta("rr", 0, 3, 4));
  EXPECT_TRUE(table_.has({"r", 1}));
  table_.abort({"r", 1}, now_, out_);
  EXPECT_EQ(said(), "cancel r.1.0; answer r.1.0 CANCELLED");
  EXPECT_EQ(table_.num_transfers(), 2u);
  EXPECT_FALSE(table_.has({"r", 1}));
  table_.abort({"r", 1}, now_, out_);
  table_.abort({"q", 0}, now_, out_);
  EXPECT_EQ(said(), "");
}

TEST_F(EcSenderTableTest, ListensToWhomItAsked) {
  add(meta("r", 0, 1, 4));
  EXPECT_EQ(allocate({"r", 0, 0}, V::kHit, 0, kOtherE), "");
  EXPECT_EQ(inject({"r", 0, 0}, V::kAllocated, kOtherE), "");
  table_.on_cancel(kOtherE, {"r", 0, 0}, now_, out_);
  table_.on_cancel(kP, {"r", 0, 1}, now_, out_);
  table_.on_cancel(kP, {"r", 1, 0}, now_, out_);
  EXPECT_EQ(said(), "");
  table_.on_cancel(kP, {"r", 0, 0}, now_, out_);
  EXPECT_EQ(said(), "answer r.0.0 CANCELLED");
}

TEST_F(EcSenderTableTest, ARestartedPeerAnswersForTheOldOne) {
  add(meta("r", 0, 1, 4));
  encoded({"r", 0});
  allocate({"r", 0, 0}, V::kAllocated, 7);
  transport(EcSenderEvent::kSendDone, {"r", 0, 0});
  EXPECT_EQ(wait(), "query r.0.0");
  EXPECT_EQ(inject({"r", 0, 0}, V::kGone, {"p", 99}), "metadata r.0.1");
  EXPECT_EQ(allocate({"r", 0, 1}, V::kAllocated, 8, {"p", 99}), "cache r.0.1 8 tcp://p:1") << "without an encode";
}

TEST_F(EcSenderTableTest, TheTransportSpeaksOfAnAttempt) {
  add(meta("r", 0, 1, 4));
  encoded({"r", 0});
  allocate({"r", 0, 0}, V::kAllocated, 7);
  EXPECT_EQ(allocate({"r", 0, 0}, V::kGone), "stop r.0.1; metadata r.0.1");
  allocate({"r", 0, 1}, V::kAllocated, 8);
  EXPECT_EQ(transport(EcSenderEvent::kSendFailed, {"r", 0, 0}), "") << "of the one before";
  EXPECT_EQ(transport(EcSenderEvent::kSendFailed, {"r", 0, 1}), "metadata r.0.2");
}

TEST_F(EcSenderTableTest, PeerGone) {
  add(meta("r", 0, 1, 4));
  table_.add(kOtherE, meta("s", 0, 2, 4), now_, out_).IgnoreError();
  add(meta("t", 0, 3, 4));
  table_.on_peer_gone({"p", 4}, now_, out_);
  out_.clear();
  EXPECT_EQ(table_.num_transfers(), 3u) << "another start";
  table_.on_peer_gone(kP, now_, out_);
  EXPECT_EQ(said(), "cancel r.0.0; answer r.0.0 UNAVAILABLE; cancel t.0.0; answer t.0.0 UNAVAILABLE");
  EXPECT_EQ(table_.num_transfers(), 1u);
}

TEST_F(EcSenderTableTest, BrokerAway) {
  add(meta("r", 0, 1, 4));
  table_.on_path(true, now_);
  EXPECT_EQ(table_.next_time(), TimePoint{} + seconds(1000));
  EXPECT_EQ(add(meta("s", 0, 2, 4)), "metadata s.0.0") << "into the outbox";
  EXPECT_EQ(table_.next_time(), TimePoint{} + seconds(1000));
  EXPECT_EQ(transport(EcSenderEvent::kOutboxFull, {"s", 0, 0}), "answer s.0.0 ABORTED");
  now_ += seconds(60);
  table_.on_time(now_, out_);
  EXPECT_EQ(said(), "");
  table_.on_path(false, now_);
  EXPECT_EQ(wait(), "metadata r.0.0");
  EXPECT_EQ(now_, TimePoint{} + seconds(60));
}

TEST_F(EcSenderTableTest, EachInputHasItsOwnJitter) {
  for (uint32_t input = 0; input < 3; ++input) add(meta("r", input, input, 4));
  std::vector<TimePoint> times;
  for (int i = 0; i < 3; ++i) {
    wait();
    times.push_back(now_);
  }
  EXPECT_TRUE(times[0] < times[1] && times[1] < times[2]);
  EXPECT_LE(times[2] - TimePoint{}, milliseconds(250));
}

}  // namespace
}  // namespace transept
