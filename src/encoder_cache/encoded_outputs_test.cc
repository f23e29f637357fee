#include "encoder_cache/encoded_outputs.h"

#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace transept {
namespace {

ContentDigest digest(int i) {
  ContentDigest made{};
  made.bytes[0] = static_cast<std::byte>(i);
  return made;
}

EcRows row_values(size_t size, int value = 0) {
  return make_ec_rows(std::vector<std::byte>(size, static_cast<std::byte>(value)));
}

// Makes an output and ends its use.
void make(EncodedOutputs& outputs, int i, size_t size) {
  ASSERT_TRUE(outputs.reserve(digest(i), size));
  outputs.put(digest(i), row_values(size, i));
  outputs.release(digest(i));
}

TEST(EncodedOutputs, StayWithoutAUseAndAreFoundAgain) {
  EncodedOutputs outputs(100);
  EXPECT_FALSE(outputs.join(digest(1)));
  ASSERT_TRUE(outputs.reserve(digest(1), 60));
  EXPECT_EQ(outputs.find(digest(1)), nullptr) << "it is being made";
  EXPECT_TRUE(outputs.join(digest(1))) << "a second use may begin meanwhile";
  outputs.put(digest(1), row_values(60, 7));
  outputs.release(digest(1));
  EXPECT_EQ(outputs.used_bytes(), 60u);
  outputs.release(digest(1));
  EXPECT_EQ(outputs.used_bytes(), 0u);
  EXPECT_EQ(outputs.unused_bytes(), 60u);
  ASSERT_NE(outputs.find(digest(1)), nullptr);
  EXPECT_EQ(outputs.find(digest(1))->front(), std::byte{7});
  EXPECT_TRUE(outputs.join(digest(1)));
  EXPECT_EQ(outputs.unused_bytes(), 0u);
}

TEST(EncodedOutputs, GiveUpTheLongestUnusedFirst) {
  EncodedOutputs outputs(100);
  for (const int i : {1, 2, 3}) make(outputs, i, 30);
  ASSERT_TRUE(outputs.join(digest(1)));
  outputs.release(digest(1));  // now 2 is unused longest
  make(outputs, 4, 40);
  EXPECT_EQ(outputs.find(digest(2)), nullptr);
  EXPECT_NE(outputs.find(digest(1)), nullptr);
  EXPECT_NE(outputs.find(digest(3)), nullptr);
  EXPECT_EQ(outputs.unused_bytes(), 100u);
}

TEST(EncodedOutputs, NeverGiveUpAUsedOneNorMoreThanNeeded) {
  EncodedOutputs outputs(100);
  make(outputs, 1, 30);
  ASSERT_TRUE(outputs.reserve(digest(2), 60));
  EXPECT_FALSE(outputs.reserve(digest(3), 41)) << "1 could go, and it would not be enough";
  EXPECT_NE(outputs.find(digest(1)), nullptr) << "so it stays";
  EXPECT_TRUE(outputs.reserve(digest(3), 40));
  EXPECT_EQ(outputs.find(digest(1)), nullptr);
  EXPECT_FALSE(outputs.reserve(digest(4), 1));
  EXPECT_FALSE(outputs.reserve(digest(4), 101));
  EXPECT_FALSE(outputs.reserve(digest(4), ~uint64_t{0}));
}

TEST(EncodedOutputs, LeaveNothingIfTheyWereNotMade) {
  EncodedOutputs outputs(100);
  ASSERT_TRUE(outputs.reserve(digest(1), 100));
  outputs.release(digest(1));
  EXPECT_EQ(outputs.num_outputs(), 0u);
  EXPECT_TRUE(outputs.reserve(digest(2), 100));
}

TEST(EncodedOutputs, RowsOutliveThem) {
  EcRows kept;
  {
    EncodedOutputs outputs(10);
    make(outputs, 1, 10);
    kept = outputs.find(digest(1));
    make(outputs, 2, 10);
    EXPECT_EQ(outputs.find(digest(1)), nullptr);
  }
  EXPECT_EQ(kept->size(), 10u);
}

// Counts are those of a plain model, whatever happens in whatever order.
TEST(EncodedOutputs, KeepTheirCountsThroughRandomHistories) {
  std::mt19937_64 random(1);
  for (int history = 0; history < 200; ++history) {
    EncodedOutputs outputs(1 + random() % 50);
    std::map<int, std::pair<uint64_t, int>> used;  // bytes and uses
    for (int step = 0; step < 300; ++step) {
      const int i = static_cast<int>(random() % 12);
      const uint64_t size = 1 + random() % 20;
      if (random() % 2 == 0) {
        if (outputs.join(digest(i))) {
          const EcRows here = outputs.find(digest(i));
          ASSERT_TRUE(here != nullptr || used.contains(i)) << "only a used one is being made";
          auto& [bytes, uses] = used[i];
          if (here != nullptr) bytes = here->size();
          ++uses;
        } else if (outputs.reserve(digest(i), size)) {
          used[i] = {size, 1};
          if (random() % 4 != 0) outputs.put(digest(i), row_values(size, i));
        }
      } else if (const auto found = used.find(i); found != used.end()) {
        if (outputs.find(digest(i)) == nullptr && random() % 2 == 0)
          outputs.put(digest(i), row_values(found->second.first, i));
        outputs.release(digest(i));
        if (--found->second.second == 0) used.erase(found);
      }
      uint64_t bytes = 0;
      for (const auto& [_, use] : used) bytes += use.first;
      ASSERT_EQ(outputs.used_bytes(), bytes);
      ASSERT_LE(outputs.used_bytes() + outputs.unused_bytes(), outputs.max_bytes());
      for (int k = 0; k < 12; ++k) {
        const EcRows here = outputs.find(digest(k));
        ASSERT_TRUE(here == nullptr || here->back() == static_cast<std::byte>(k));
      }
    }
  }
}

}  // namespace
}  // namespace transept
