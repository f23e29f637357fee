// Proves the choice of one token: ties, filters, and that draws follow the distribution that is left.
#include "sampling/choose.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "base/thread_pool.h"
#include "ops/cpu_device.h"
#include "sampling/random.h"

namespace transept {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

class ChooseTest : public ::testing::Test {
 protected:
  int32_t choose(const RowRequest& request, const std::vector<float>& scores) {
    std::vector<Candidate> scratch(scores.size());
    return choose_token(context_, request, scores, scratch);
  }

  // Pearson's statistic of `draws` choices against probabilities `expected`.
  double chi_square(RowRequest request, const std::vector<float>& scores, const std::vector<double>& expected,
                    int draws) {
    std::vector<int> counts(scores.size());
    for (int i = 0; i < draws; ++i) {
      request.position = static_cast<uint32_t>(i);
      ++counts[static_cast<size_t>(choose(request, scores))];
    }
    double sum = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      if (expected[i] == 0) {
        EXPECT_EQ(counts[i], 0) << "token " << i << " has probability zero";
        continue;
      }
      const double want = expected[i] * draws;
      sum += (counts[i] - want) * (counts[i] - want) / want;
    }
    return sum;
  }

  ThreadPool threads_{1};
  Arena arena_{1 << 16};
  CpuDevice device_{threads_};
  Context context_{device_, arena_};
};

std::vector<double> softmax(const std::vector<float>& scores, double temperature) {
  std::vector<double> p;
  p.reserve(scores.size());
  for (const float score : scores) p.push_back(score == kNever ? 0 : std::exp(score / temperature));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= total;
  return p;
}

const std::vector<float> kScores = {0.5f, 2.0f, 1.0f, -1.0f, 1.5f, kNever};

TEST_F(ChooseTest, GreedyTakesTheLowestIdOfTheBest) { EXPECT_EQ(choose({}, {1.0f, 3.0f, 3.0f}), 1); }

TEST_F(ChooseTest, NothingToChooseIsSaid) {
  EXPECT_EQ(choose({}, {kNever, kNever}), -1);
  EXPECT_EQ(choose({}, {NAN, NAN}), -1);
  RowRequest sampled;
  sampled.temperature = 1;
  EXPECT_EQ(choose(sampled, {kNever, kNever}), -1);
}

// Critical values of chi-square at p = 0.0001 for 4, 2, 1 degrees of freedom.
TEST_F(ChooseTest, DrawsFollowTheTemperature) {
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    RowRequest request;
    request.temperature = temperature;
    request.seed = 17;
    EXPECT_LT(chi_square(request, kScores, softmax(kScores, temperature), 50000), 23.5) << temperature;
  }
}

TEST_F(ChooseTest, TopKKeepsTheKBest) {
  RowRequest request;
  request.temperature = 1;
  request.top_k = 3;
  const std::vector<float> kept = {kNever, 2.0f, 1.0f, kNever, 1.5f, kNever};
  EXPECT_LT(chi_square(request, kScores, softmax(kept, 1), 50000), 18.5);
}

TEST_F(ChooseTest, TopPKeepsTheLeastSetThatReachesIt) {
  // Probabilities: 1: .434, 4: .263, 2: .160, 0: .097, 3: .022. 0.6 is reached with the second, 0.75 with the third.
  RowRequest request;
  request.temperature = 1;
  request.top_p = 0.6f;
  const std::vector<float> two = {kNever, 2.0f, kNever, kNever, 1.5f, kNever};
  EXPECT_LT(chi_square(request, kScores, softmax(two, 1), 50000), 15.2);
  request.top_p = 0.75f;
  const std::vector<float> three = {kNever, 2.0f, 1.0f, kNever, 1.5f, kNever};
  EXPECT_LT(chi_square(request, kScores, softmax(three, 1), 50000), 18.5);
}

TEST_F(ChooseTest, FiltersLookAtTheDistributionBeforeTemperature) {
  RowRequest request;
  request.temperature = 4;  // would flatten the distribution enough for a third token, were it applied first
  request.top_p = 0.6f;
  const std::vector<float> two = {kNever, 2.0f, kNever, kNever, 1.5f, kNever};
  EXPECT_LT(chi_square(request, kScores, softmax(two, 4), 50000), 15.2);
}

TEST_F(ChooseTest, MinPDropsWhatIsTooFarBelowTheBest) {
  RowRequest request;
  request.temperature = 1;
  request.min_p = 0.5f;  // exp(1.5 - 2) = 0.61 stays, exp(1 - 2) = 0.37 goes
  const std::vector<float> two = {kNever, 2.0f, kNever, kNever, 1.5f, kNever};
  EXPECT_LT(chi_square(request, kScores, softmax(two, 1), 50000), 15.2);
}

TEST_F(ChooseTest, ADrawIsAFunctionOfSeedSequenceAndPosition) {
  RowRequest request;
  request.temperature = 1;
  request.seed = 5;
  request.position = 9;
  const int32_t token = choose(request, kScores);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(choose(request, kScores), token);
  std::map<int32_t, int> by_sequence;
  for (uint32_t s = 0; s < 64; ++s) {
    request.seq_index = s;
    ++by_sequence[choose(request, kScores)];
  }
  EXPECT_GT(by_sequence.size(), 1u);
}

TEST(Uniform, FillsTheUnitIntervalEvenly) {
  std::vector<int> bins(16);
  constexpr int kDraws = 64000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = uniform(42, static_cast<uint32_t>(i % 4), static_cast<uint32_t>(i));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++bins[static_cast<size_t>(u * 16)];
  }
  double chi = 0;
  for (const int count : bins) chi += (count - kDraws / 16.0) * (count - kDraws / 16.0) / (kDraws / 16.0);
  EXPECT_LT(chi, 44.3);  // 15 degrees of freedom, p = 0.0001
}

TEST(RankOf, CountsTheBetterAndTheEqualBefore) {
  const std::vector<float> scores = {1.0f, 3.0f, 1.0f, 2.0f};
  EXPECT_EQ(rank_of(scores, 1), 1);
  EXPECT_EQ(rank_of(scores, 3), 2);
  EXPECT_EQ(rank_of(scores, 0), 3);
  EXPECT_EQ(rank_of(scores, 2), 4);
}

TEST_F(ChooseTest, TopEntriesAreBestFirstTiesByIdAndNothingOfProbabilityZero) {
  const std::vector<float> scores = {1.0f, 3.0f, kNever, 3.0f, 2.0f};
  std::vector<TokenLogprob> top(8);
  ASSERT_EQ(top_entries(context_, scores, 1.0f, 3, top), 3);
  EXPECT_EQ(top[0].token_id, 1);
  EXPECT_EQ(top[1].token_id, 3);
  EXPECT_EQ(top[2].token_id, 4);
  EXPECT_FLOAT_EQ(top[0].logprob, 2.0f);
  EXPECT_EQ(top[2].rank, 3);
  EXPECT_EQ(top_entries(context_, scores, 1.0f, 8, top), 4);
  EXPECT_EQ(top_entries(context_, scores, 1.0f, 0, top), 0);
}

TEST_F(ChooseTest, TopEntriesOfLongRowsAreThoseOfASortedRow) {
  std::mt19937 rng(3);
  for (const size_t size : {511u, 512u, 513u, 3000u}) {
    std::normal_distribution<float> normal(0, 3);
    std::vector<float> scores(size);
    // Rounded, so that equals are many.
    for (float& score : scores) score = std::round(normal(rng) * 4) / 4;
    scores[5] = std::nanf("");
    std::vector<int32_t> ids(size);
    std::iota(ids.begin(), ids.end(), 0);
    ids.erase(ids.begin() + 5);
    std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
      return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
    });
    for (const int32_t k : {1, 8, 40}) {
      std::vector<TokenLogprob> top(static_cast<size_t>(k));
      ASSERT_EQ(top_entries(context_, scores, 0, k, top), k);
      for (size_t i = 0; i < top.size(); ++i) EXPECT_EQ(top[i].token_id, ids[i]) << size << ", place " << i;
    }
  }
}

}  // namespace
}  // namespace transept
