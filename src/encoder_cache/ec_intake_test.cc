#include "encoder_cache/ec_intake.h"

#include <gtest/gtest.h>

#include <vector>

namespace transept {
namespace {

using Verdict = EcIntake::Verdict;

const EcKey kKey{"r", 0, 1};
const std::vector<std::byte> kBytes(64);

EcChunk chunk(uint64_t offset, size_t size) { return {kKey, 7, offset, 32, std::span(kBytes).first(size)}; }

TEST(EcIntake, TakesAnOutputInOrder) {
  EcIntake intake;
  intake.open(7, kKey, 32);
  EXPECT_EQ(intake.take(chunk(0, 10)).verdict, Verdict::kStore);
  EXPECT_FALSE(intake.take(chunk(10, 21)).is_complete);
  EXPECT_TRUE(intake.is_open(7));
  const EcIntake::Answer last = intake.take(chunk(31, 1));
  EXPECT_EQ(last.verdict, Verdict::kStore);
  EXPECT_TRUE(last.is_complete);
  EXPECT_FALSE(intake.is_open(7));
  EXPECT_EQ(intake.take(chunk(31, 1)).verdict, Verdict::kRefused) << "it was complete";
}

TEST(EcIntake, DropsWhatIsHereAndWhatComesTooEarly) {
  EcIntake intake;
  intake.open(7, kKey, 32);
  EXPECT_EQ(intake.take(chunk(1, 4)).verdict, Verdict::kGap);
  intake.take(chunk(0, 10));
  EXPECT_EQ(intake.take(chunk(0, 10)).verdict, Verdict::kHere);
  EXPECT_EQ(intake.take(chunk(4, 6)).verdict, Verdict::kHere);
  EXPECT_EQ(intake.take(chunk(11, 4)).verdict, Verdict::kGap);
  const EcIntake::Answer half = intake.take(chunk(4, 8));
  EXPECT_EQ(half.verdict, Verdict::kStore);
  EXPECT_EQ(half.skip, 6u);
  EXPECT_EQ(intake.take(chunk(12, 20)).skip, 0u) << "the next begins where it ended";
  EXPECT_FALSE(intake.is_open(7));
}

TEST(EcIntake, RefusesWhatHasNoReservation) {
  EcIntake intake;
  EXPECT_EQ(intake.take(chunk(0, 10)).verdict, Verdict::kRefused);
  intake.open(7, kKey, 32);
  const auto refuses = [&](auto change) {
    EcChunk wrong = chunk(0, 10);
    change(wrong);
    const EcIntake::Answer answer = intake.take(wrong);
    return answer.verdict == Verdict::kRefused && !answer.is_complete;
  };
  EXPECT_TRUE(refuses([](EcChunk& c) { c.reservation = 8; }));
  EXPECT_TRUE(refuses([](EcChunk& c) { c.key.attempt = 0; }));
  EXPECT_TRUE(refuses([](EcChunk& c) { c.key.request_id = "s"; }));
  EXPECT_TRUE(refuses([](EcChunk& c) { c.total = 33; }));
  EXPECT_TRUE(refuses([](EcChunk& c) { c.bytes = {}; }));
  EXPECT_TRUE(refuses([](EcChunk& c) { c.bytes = std::span(kBytes).first(33); }));
  EXPECT_TRUE(refuses([](EcChunk& c) { c.offset = 23; }));
  EXPECT_TRUE(refuses([](EcChunk& c) { c.offset = 32; }));
  EXPECT_TRUE(refuses([](EcChunk& c) { c.offset = ~uint64_t{0} - 4; })) << "offset + size overflows";
  EXPECT_FALSE(refuses([](EcChunk&) {}));
  intake.close(7);
  EXPECT_TRUE(refuses([](EcChunk&) {}));
  intake.close(7);
}

TEST(EcIntakeDeathTest, CatchesMisuse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EcIntake intake;
  intake.open(7, kKey, 32);
  EXPECT_DEATH(intake.open(7, kKey, 32), "opened twice");
  EXPECT_DEATH(intake.open(8, kKey, 0), "no bytes");
}

}  // namespace
}  // namespace transept
