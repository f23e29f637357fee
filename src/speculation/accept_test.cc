#include "speculation/accept.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

int32_t accepted(const std::vector<int32_t>& drafts, const std::vector<int32_t>& chosen) {
  std::vector<RowSample> samples;
  for (const int32_t token : chosen) samples.push_back({.token_id = token});
  return num_accepted(drafts, samples);
}

TEST(Accept, KeepsDraftsUpToTheFirstThatWasNotChosen) {
  EXPECT_EQ(accepted({}, {5}), 0);
  EXPECT_EQ(accepted({5}, {5, 6}), 1);
  EXPECT_EQ(accepted({4}, {5, 6}), 0);
  EXPECT_EQ(accepted({5, 6, 7}, {5, 6, 7, 8}), 3);
  EXPECT_EQ(accepted({5, 9, 7}, {5, 6, 7, 8}), 1) << "what is right behind a wrong one is right by chance";
  EXPECT_EQ(accepted({9, 6, 7}, {5, 6, 7, 8}), 0);
  EXPECT_EQ(accepted({6, 7}, {5, 6, 7}), 0) << "a draft is compared with the choice in its own place";
}

// A row without numbers has no token, so nothing is kept behind it.
TEST(Accept, ARowWithoutATokenEndsTheDraft) {
  EXPECT_EQ(accepted({5, 6}, {5, kNotNumbers, 7}), 1);
  EXPECT_EQ(accepted({5, 6}, {kNothingLeft, 6, 7}), 0);
}

}  // namespace
}  // namespace transept
