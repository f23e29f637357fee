// Proves what select_row reports of a token that is scored: the raw distribution, over all ids or over the first ones.
#include "sampling/select_row.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/thread_pool.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

class SelectRowTest : public ::testing::Test {
 protected:
  RowSample select(const RowRequest& request, std::vector<float> scores) {
    RowSample sample;
    top_.resize(static_cast<size_t>(num_top_entries(request, static_cast<int64_t>(scores.size()))));
    std::vector<Candidate> scratch(scores.size());
    select_row(context_, request, scores, scratch, sample, top_);
    top_.resize(static_cast<size_t>(sample.num_top));
    return sample;
  }

  ThreadPool threads_{1};
  Arena arena_{1 << 12};
  CpuDevice device_{threads_};
  Context context_{device_, arena_};
  std::vector<TokenLogprob> top_;
};

const std::vector<float> kScores = {std::log(1.0f), std::log(2.0f), std::log(5.0f), std::log(8.0f)};

TEST_F(SelectRowTest, ATargetIsScoredInTheRawDistribution) {
  RowEdits edits;
  edits.banned = {1};
  RowRequest request{.target_token = 1, .edits = &edits, .temperature = 2, .num_logprobs = 2};
  const RowSample sample = select(request, kScores);
  EXPECT_EQ(sample.token_id, 1);
  EXPECT_NEAR(sample.logprob, std::log(2.0 / 16), 1e-6);
  EXPECT_EQ(sample.rank, 3);
  ASSERT_EQ(top_.size(), 2u);
  EXPECT_EQ(top_[0].token_id, 3);
}

TEST_F(SelectRowTest, ATargetIsScoredAmongTheFirstIdsAlone) {
  RowRequest request{.target_token = 1, .target_vocab = 3, .num_logprobs = 3};
  const RowSample sample = select(request, kScores);
  EXPECT_NEAR(sample.logprob, std::log(2.0 / 8), 1e-6);
  EXPECT_EQ(sample.rank, 2);
  ASSERT_EQ(top_.size(), 3u);
  EXPECT_EQ(top_[0].token_id, 2);
  EXPECT_NEAR(top_[0].logprob, std::log(5.0 / 8), 1e-6);
  request.target_vocab = 99;  // more than there are
  EXPECT_NEAR(select(request, kScores).logprob, std::log(2.0 / 16), 1e-6);
}

TEST_F(SelectRowTest, ATargetPastTheFirstIdsHasNoProbability) {
  RowRequest request{.target_token = 3, .target_vocab = 3, .num_logprobs = 1};
  const RowSample sample = select(request, kScores);
  EXPECT_EQ(sample.token_id, 3);
  EXPECT_EQ(sample.logprob, -INFINITY);
  EXPECT_EQ(sample.rank, 0);
  ASSERT_EQ(top_.size(), 1u);
  EXPECT_EQ(top_[0].token_id, 2);
}

TEST_F(SelectRowTest, ScoresThatAreNotNumbersAreSaid) {
  EXPECT_EQ(select({.target_token = 1}, {1, NAN, 2}).token_id, kNotNumbers);
}

// Beams of openai-whisper's search are sums over what is left; Hugging Face's keep the mass that was banned.
TEST_F(SelectRowTest, CandidatesAreNormalisedAgainOnlyWhereItIsAskedFor) {
  RowEdits edits;
  edits.banned = {3};
  RowRequest request{.edits = &edits, .num_candidates = 2};
  EXPECT_NEAR(select(request, kScores).logprob, std::log(5.0 / 16), 1e-6);
  edits.renormalize = true;
  EXPECT_NEAR(select(request, kScores).logprob, std::log(5.0 / 8), 1e-6);
}

}  // namespace
}  // namespace transept
