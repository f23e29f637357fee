#include "proxy/decoder_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace transept {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Outcome = DecoderPool::Outcome;

InstanceRecord record_of(std::string name, uint64_t incarnation = 1, int64_t num_running = 0) {
  InstanceRecord record;
  record.id = {std::move(name), incarnation};
  record.role = InstanceRole::kDecode;
  record.url = "http://127.0.0.1:1";
  record.load.num_running = num_running;
  return record;
}

class DecoderPoolTest : public ::testing::Test {
 protected:
  std::string begin(std::vector<InstanceId> tried = {}) {
    const auto choice = pool_.begin(tried, now_);
    return choice.has_value() ? choice->id.name : "none";
  }
  void end(const std::string& name, Outcome outcome, uint64_t incarnation = 1) {
    pool_.end({name, incarnation}, outcome, now_);
  }
  void refuse_three_times(const std::string& name, std::string_view words) {
    for (int i = 0; i < 3; ++i) pool_.end({name, 1}, Outcome::kRefused, now_, words);
  }
  void set(std::vector<InstanceRecord> records) { pool_.set_records(records); }

  DecoderPool pool_{{.seed = 7}};
  TimePoint now_{seconds(1000)};
};

TEST_F(DecoderPoolTest, OneThatDrainsGetsNothingNew) {
  InstanceRecord drains = record_of("p0");
  set({drains, record_of("p1")});
  EXPECT_EQ(pool_.num_ready(now_), 2u);
  drains.is_draining = true;
  set({drains, record_of("p1")});
  EXPECT_EQ(pool_.num_ready(now_), 1u);
  EXPECT_EQ(pool_.states(now_).num_ready, 1);
  EXPECT_EQ(pool_.states(now_).num_draining, 1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(begin(), "p1");
  EXPECT_EQ(begin({{"p1", 1}}), "none");
  end("p1", Outcome::kBroken);
  EXPECT_EQ(pool_.states(now_).num_left_out, 1);
  EXPECT_EQ(begin(), "none");
}

TEST_F(DecoderPoolTest, ChoosesAmongDecodeInstancesThatAreThere) {
  EXPECT_EQ(begin(), "none");
  InstanceRecord encoder = record_of("e0");
  encoder.role = InstanceRole::kEncode;
  InstanceRecord unreachable = record_of("p1");
  unreachable.url = "";
  set({encoder, record_of("p0"), unreachable});
  EXPECT_EQ(begin(), "p0");
  EXPECT_EQ(begin({{"p0", 1}}), "none");
  EXPECT_EQ(pool_.num_ready(now_), 1u);
  set({});
  EXPECT_EQ(begin(), "none");
}

TEST_F(DecoderPoolTest, TheLessBusyOfTwo) {
  set({record_of("p0", 1, 10), record_of("p1")});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(begin(), "p1");
  // As busy by now: both come.
  std::set<std::string> seen;
  for (int i = 0; i < 4; ++i) seen.insert(begin());
  EXPECT_EQ(seen, (std::set<std::string>{"p0", "p1"}));
}

TEST_F(DecoderPoolTest, WhatIsBegunIsEven) {
  std::vector<InstanceRecord> records;
  records.reserve(8);
  for (int i = 0; i < 8; ++i) records.push_back(record_of("p" + std::to_string(i)));
  set(records);
  std::map<std::string, int> begun;
  for (int i = 0; i < 800; ++i) ++begun[begin()];
  EXPECT_EQ(begun.size(), 8u);
  for (const auto& [name, count] : begun) EXPECT_NEAR(count, 100, 6) << name;
}

TEST_F(DecoderPoolTest, WhoBreaksIsLeftOutAndProbed) {
  set({record_of("p0")});
  EXPECT_EQ(begin(), "p0");
  EXPECT_EQ(begin(), "p0");
  end("p0", Outcome::kBroken);
  end("p0", Outcome::kBroken);  // at the same time: one pause
  EXPECT_EQ(begin(), "none");
  now_ += seconds(4);
  EXPECT_EQ(begin(), "none");
  now_ += seconds(1);
  EXPECT_EQ(begin(), "p0");
  EXPECT_EQ(begin(), "none") << "one probe at a time";
  end("p0", Outcome::kBroken);
  now_ += seconds(9);
  EXPECT_EQ(begin(), "none");
  now_ += seconds(1);
  EXPECT_EQ(begin(), "p0");
  end("p0", Outcome::kGivenUp);
  EXPECT_EQ(begin(), "p0") << "the client's end says nothing";
  end("p0", Outcome::kAnswered);
  EXPECT_EQ(begin(), "p0");
  EXPECT_EQ(begin(), "p0");
}

// What it answers may take minutes: a stream, or a summary of a long text.
TEST_F(DecoderPoolTest, WhoBeginsToAnswerIsWell) {
  set({record_of("p0")});
  EXPECT_EQ(begin(), "p0");
  end("p0", Outcome::kBroken);
  now_ += seconds(5);
  EXPECT_EQ(begin(), "p0");
  EXPECT_EQ(begin(), "none");
  pool_.begin_answer({"p0", 1});
  EXPECT_EQ(begin(), "p0");
  end("p0", Outcome::kAnswered);
  end("p0", Outcome::kBroken);  // it breaks off later
  EXPECT_EQ(begin(), "none");
  pool_.begin_answer({"p0", 2});  // another incarnation is not known
  pool_.begin_answer({"p1", 1});
  EXPECT_EQ(begin(), "none");
}

TEST_F(DecoderPoolTest, AProbeThatTakesLongIsNotTheOnlyOne) {
  set({record_of("p0")});
  EXPECT_EQ(begin(), "p0");
  end("p0", Outcome::kBroken);
  now_ += seconds(5);
  EXPECT_EQ(begin(), "p0");
  now_ += milliseconds(4999);
  EXPECT_EQ(begin(), "none");
  now_ += milliseconds(1);
  EXPECT_EQ(begin(), "p0") << "the first has said nothing for as long as the pause was";
  EXPECT_EQ(begin(), "none");
}

TEST_F(DecoderPoolTest, PausesEndAtAMinute) {
  set({record_of("p0")});
  Duration last{};
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(begin(), "p0");
    end("p0", Outcome::kBroken);
    const TimePoint from = now_;
    while (pool_.num_ready(now_) == 0) now_ += seconds(1);
    last = now_ - from;
  }
  EXPECT_EQ(last, seconds(60));
}

TEST_F(DecoderPoolTest, WhoRefusesThriceIsLeftOut) {
  set({record_of("p0")});
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(begin(), "p0");
    end("p0", Outcome::kRefused);
  }
  EXPECT_EQ(begin(), "none");
  for (int i = 0; i < 8; ++i) {
    now_ += seconds(1);
    ASSERT_EQ(begin(), "p0");
    end("p0", Outcome::kRefused);
    EXPECT_EQ(begin(), "none") << "a probe that is refused";
  }
  now_ += seconds(1);
  ASSERT_EQ(begin(), "p0") << "such pauses do not grow";
  end("p0", Outcome::kBroken);
  now_ += seconds(4);
  EXPECT_EQ(begin(), "none");
  now_ += seconds(1);
  ASSERT_EQ(begin(), "p0");
  end("p0", Outcome::kAnswered);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(begin(), "p0");
    end("p0", Outcome::kRefused);
  }
  EXPECT_EQ(begin(), "p0") << "two in a row";
}

TEST_F(DecoderPoolTest, ANewIncarnationIsWell) {
  set({record_of("p0")});
  EXPECT_EQ(begin(), "p0");
  EXPECT_EQ(begin(), "p0");
  end("p0", Outcome::kBroken);
  set({record_of("p0")});
  EXPECT_EQ(begin(), "none") << "the record is renewed, and says no more than that";
  set({record_of("p0", 2)});
  EXPECT_EQ(begin(), "p0");
  end("p0", Outcome::kBroken);  // of the old one
  EXPECT_EQ(begin(), "p0");
}

// Held rows take half of what was free at best, and leave the other half.
TEST(DecoderPool, HoldsWhatLeavesRoom) {
  DecoderPool pool({});
  InstanceRecord record;
  record.id = {"p0", 1};
  record.role = InstanceRole::kDecode;
  record.url = "http://p0";
  const auto set_free = [&](int64_t num_free) {
    record.load.num_free_slots = num_free;
    pool.set_records(std::span(&record, 1));
  };
  set_free(0);
  EXPECT_FALSE(pool.begin_hold(record.id, 1)) << "nothing is known of its room";
  set_free(101);
  EXPECT_FALSE(pool.begin_hold(record.id, 51));
  EXPECT_TRUE(pool.begin_hold(record.id, 30));
  EXPECT_FALSE(pool.begin_hold(record.id, 21));
  EXPECT_TRUE(pool.begin_hold(record.id, 20));
  pool.end_hold(record.id, 30);
  set_free(80);  // of others'
  EXPECT_FALSE(pool.begin_hold(record.id, 10));
  pool.end_hold(record.id, 20);
  EXPECT_TRUE(pool.begin_hold(record.id, 29));
  EXPECT_FALSE(pool.begin_hold({"p0", 2}, 1));
  pool.end_hold({"p1", 2}, 1);
  record.id.incarnation = 2;
  set_free(10);
  EXPECT_FALSE(pool.begin_hold({"p0", 1}, 1));
  EXPECT_TRUE(pool.begin_hold(record.id, 5));
}

TEST(DecoderPool, IsWellWhileItIsThereAndNotLeftOut) {
  DecoderPool pool({});
  InstanceRecord record;
  record.id = {"p0", 1};
  record.role = InstanceRole::kDecode;
  record.url = "http://p0";
  const TimePoint now{};
  EXPECT_FALSE(pool.is_well(record.id, now));
  pool.set_records(std::span(&record, 1));
  EXPECT_TRUE(pool.is_well(record.id, now));
  EXPECT_FALSE(pool.is_well({"p0", 2}, now));
  ASSERT_TRUE(pool.begin({}, now).has_value());
  pool.end(record.id, DecoderPool::Outcome::kBroken, now);
  EXPECT_FALSE(pool.is_well(record.id, now));
  EXPECT_TRUE(pool.is_well(record.id, now + std::chrono::seconds(5)));
}

TEST_F(DecoderPoolTest, KeepsTheLastWordsOfThoseThatRefuse) {
  set({record_of("p0"), record_of("p1")});
  pool_.end({"p0", 1}, Outcome::kRefused, now_, "once");
  EXPECT_EQ(pool_.last_refusal(), "") << "it is not left out";
  refuse_three_times("p1", "p1's");
  now_ += seconds(1);
  refuse_three_times("p0", "p0's");
  refuse_three_times("p0", "");
  EXPECT_EQ(pool_.last_refusal(), "p0's");
  end("p0", Outcome::kAnswered);
  EXPECT_EQ(pool_.last_refusal(), "p1's");
  set({record_of("p0"), record_of("p1")});
  EXPECT_EQ(pool_.last_refusal(), "p1's") << "its record was renewed";
  end("p1", Outcome::kBroken);
  EXPECT_EQ(pool_.last_refusal(), "") << "that is not why";
  refuse_three_times("p0", std::string(DecoderPool::kMaxWordsBytes + 1, 'x'));
  EXPECT_EQ(pool_.last_refusal(), std::string(DecoderPool::kMaxWordsBytes, 'x'));
  set({record_of("p0", 2)});
  EXPECT_EQ(pool_.last_refusal(), "") << "another incarnation";
}

}  // namespace
}  // namespace transept
