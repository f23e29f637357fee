// Proves that the best token found by pieces is the one that a whole row gives, with its log-probability, under every
// edit that pieces take, ties and rows without numbers included.
#include "sampling/greedy_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/checked_math.h"
#include "ops/cpu_device.h"
#include "ops/gemm.h"
#include "sampling/select_row.h"

namespace transept {
namespace {

class GreedyRowTest : public ::testing::Test {
 protected:
  RowSample whole(const RowRequest& request, std::vector<float> scores) {
    std::vector<Candidate> scratch(scores.size());
    RowSample sample;
    select_row(context_, request, scores, scratch, sample, {});
    return sample;
  }

  RowSample by_pieces(const RowRequest& request, std::vector<float> scores) {
    EXPECT_TRUE(is_found_by_pieces(request));
    const auto size = static_cast<int64_t>(scores.size());
    std::vector<GreedyPiece> pieces(static_cast<size_t>(ceil_div(size, kPieceColumns)));
    // Last piece first: what order threads take them in must not show.
    for (int64_t i = static_cast<int64_t>(pieces.size()) - 1; i >= 0; --i) {
      const int64_t begin = i * kPieceColumns, end = std::min(begin + kPieceColumns, size);
      pieces[static_cast<size_t>(i)] =
          look_at_piece(context_, request, static_cast<int32_t>(begin),
                        std::span(scores).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    }
    RowSample sample;
    choose_by_pieces(request, pieces, sample);
    return sample;
  }

  void expect_alike(const RowRequest& request, const std::vector<float>& scores, const std::string& what) {
    const RowSample expected = whole(request, scores), found = by_pieces(request, scores);
    EXPECT_EQ(found.token_id, expected.token_id) << what;
    // Two sums of exponentials in float32, in another order.
    EXPECT_NEAR(found.logprob, expected.logprob, 2e-5 + 1e-6 * std::abs(expected.logprob)) << what;
    RowRequest token_alone = request;
    token_alone.wants_logprob = false;
    for (const RowSample& sample : {whole(token_alone, scores), by_pieces(token_alone, scores)}) {
      EXPECT_EQ(sample.token_id, expected.token_id) << what;
      EXPECT_EQ(sample.logprob, 0) << what;
    }
  }

  ThreadPool threads_{1};
  Arena arena_{size_t{1} << 20};
  CpuDevice device_{threads_, detect_isa()};
  Context context_{device_, arena_};
};

RowEdits random_edits(std::mt19937& rng, int32_t vocab) {
  const auto id = [&] { return static_cast<int32_t>(rng() % static_cast<uint32_t>(vocab)); };
  RowEdits edits;
  if (rng() % 2 == 0) edits.biases = {{id(), 3.0f}, {id(), -2.5f}};
  if (rng() % 2 == 0) edits.repetition_penalty = 1.3f, edits.seen = {id(), id(), id()};
  if (rng() % 2 == 0) {
    edits.presence_penalty = 0.5f, edits.frequency_penalty = 0.25f;
    edits.generated = {{id(), 2}, {id(), 1}};
  }
  for (auto i = rng() % 40; i > 0; --i) edits.banned.push_back(id());
  if (rng() % 3 == 0) edits.banned_ranges = {{0, id()}, {id(), std::numeric_limits<int32_t>::max()}};
  if (rng() % 3 == 0) edits.timestamp_begin = id();
  if (rng() % 8 == 0) edits.forced_token = id();
  return edits;
}

TEST_F(GreedyRowTest, FindsWhatTheWholeRowGives) {
  std::mt19937 rng(1);
  for (const int32_t vocab : {1, 31, 1023, 1024, 1025, 5000}) {
    for (int round = 0; round < 300; ++round) {
      std::normal_distribution<float> normal(0, round % 3 == 0 ? 0.1f : 3.0f);
      std::vector<float> scores(static_cast<size_t>(vocab));
      // Rounded, so that the best score is often there several times.
      for (float& score : scores) score = std::round(normal(rng) * 4) / 4;
      const RowEdits edits = random_edits(rng, vocab);
      expect_alike({.edits = &edits}, scores, str_cat("vocabulary ", vocab, ", round ", round));
    }
  }
}

TEST_F(GreedyRowTest, SeesWhatIsNotANumberAndWhatIsForbidden) {
  RowEdits ban_all;
  ban_all.banned_ranges = {{0, 3000}};
  for (const bool wants : {true, false}) {
    std::vector<float> scores(3000, 1.0f);
    const auto token = [&](const RowEdits* edits = nullptr) {
      return by_pieces({.edits = edits, .wants_logprob = wants}, scores).token_id;
    };
    EXPECT_EQ(token(&ban_all), kNothingLeft);
    scores[2500] = std::nanf("");
    EXPECT_EQ(token(), kNotNumbers);
    scores[2500] = HUGE_VALF;
    EXPECT_EQ(token(), kNotNumbers);
    std::fill(scores.begin(), scores.end(), -HUGE_VALF);
    EXPECT_EQ(token(), kNothingLeft);
    scores[7] = std::nanf("");
    EXPECT_EQ(token(), kNotNumbers);
  }
}

TEST_F(GreedyRowTest, LeavesTheOthersToTheWholeRow) {
  RowEdits renormalized, many;
  renormalized.renormalize = true;
  many.banned.resize(1000);
  EXPECT_FALSE(is_found_by_pieces({.edits = &renormalized}));
  EXPECT_FALSE(is_found_by_pieces({.edits = &many}));
  EXPECT_FALSE(is_found_by_pieces({.target_token = 1}));
  EXPECT_FALSE(is_found_by_pieces({.temperature = 0.5f}));
  EXPECT_FALSE(is_found_by_pieces({.num_logprobs = 0}));
  EXPECT_FALSE(is_found_by_pieces({.num_candidates = 4}));
  EXPECT_TRUE(is_found_by_pieces({.temperature = 0.5f, .top_k = 1}));
}

}  // namespace
}  // namespace transept
