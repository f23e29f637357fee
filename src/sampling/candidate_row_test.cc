// Proves that the candidates listed by pieces are those of a whole row, with their log-probabilities, whatever the
// order of the pieces and however they are divided among threads, ties included.
#include "sampling/candidate_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/checked_math.h"
#include "ops/cpu_device.h"
#include "ops/gemm.h"
#include "sampling/choose.h"
#include "sampling/select_row.h"

namespace transept {
namespace {

struct Listed {
  RowSample sample;
  std::vector<TokenLogprob> top;
};

class CandidateRowTest : public ::testing::Test {
 protected:
  Listed whole(const RowRequest& request, std::vector<float> scores) {
    Listed result = prepared(request, scores.size());
    std::vector<Candidate> scratch(scores.size());
    select_row(context_, request, scores, scratch, result.sample, result.top);
    return result;
  }

  // Pieces in random order, each given to one of `threads`.
  Listed by_pieces(const RowRequest& request, std::vector<float> scores, size_t threads) {
    EXPECT_TRUE(is_listed_by_pieces(request));
    Listed result = prepared(request, scores.size());
    const auto size = static_cast<int64_t>(scores.size());
    std::vector<GreedyPiece> pieces(static_cast<size_t>(ceil_div(size, kPieceColumns)));
    std::vector<size_t> order(pieces.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), rng_);
    constexpr size_t kStep = 3;
    std::vector<CandidateList> lists(threads * kStep);
    for (const size_t i : order) {
      const int64_t begin = static_cast<int64_t>(i) * kPieceColumns, end = std::min(begin + kPieceColumns, size);
      pieces[i] = list_piece(context_, request, static_cast<int32_t>(begin),
                             std::span(scores).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                             lists[rng_() % threads * kStep]);
    }
    choose_candidates(pieces, lists, kStep, result.sample, result.top);
    return result;
  }

  static Listed prepared(const RowRequest& request, size_t vocab) {
    Listed result;
    result.sample.top_begin = 17;
    result.top.resize(static_cast<size_t>(num_top_entries(request, static_cast<int64_t>(vocab))));
    return result;
  }

  static void expect_alike(const Listed& found, const Listed& expected, const std::string& what) {
    EXPECT_EQ(found.sample.token_id, expected.sample.token_id) << what;
    EXPECT_EQ(found.sample.rank, expected.sample.rank) << what;
    EXPECT_EQ(found.sample.top_begin, 17) << what;
    ASSERT_EQ(found.sample.num_top, expected.sample.num_top) << what;
    for (size_t i = 0; i < static_cast<size_t>(found.sample.num_top); ++i) {
      EXPECT_EQ(found.top[i].token_id, expected.top[i].token_id) << what << ", entry " << i;
      EXPECT_EQ(found.top[i].rank, expected.top[i].rank) << what << ", entry " << i;
      // Two sums of exponentials in float32, in another order.
      EXPECT_NEAR(found.top[i].logprob, expected.top[i].logprob, 2e-5 + 1e-6 * std::abs(expected.top[i].logprob))
          << what << ", entry " << i;
    }
  }

  std::mt19937 rng_{1};
  ThreadPool threads_{1};
  Arena arena_{size_t{1} << 20};
  CpuDevice device_{threads_, detect_isa()};
  Context context_{device_, arena_};
};

TEST_F(CandidateRowTest, ListsWhatTheWholeRowGives) {
  for (const int32_t vocab : {1, 31, 1023, 1024, 1025, 5000}) {
    const auto id = [&] { return static_cast<int32_t>(rng_() % static_cast<uint32_t>(vocab)); };
    for (int round = 0; round < 200; ++round) {
      std::normal_distribution<float> normal(0, round % 3 == 0 ? 0.1f : 3.0f);
      std::vector<float> scores(static_cast<size_t>(vocab));
      // Rounded, so that there are many ties, also where a list ends.
      for (float& score : scores) score = std::round(normal(rng_) * 4) / 4;
      // No quarters: between scores that only an edit makes equal, rounding decides.
      RowEdits edits;
      if (rng_() % 2 == 0) edits.biases = {{id(), 3.1f}, {id(), -2.6f}};
      if (rng_() % 2 == 0) edits.frequency_penalty = 0.3f, edits.generated = {{id(), 2}, {id(), 1}};
      for (auto i = rng_() % 40; i > 0; --i) edits.banned.push_back(id());
      if (rng_() % 3 == 0) edits.banned_ranges = {{0, id()}};
      const RowRequest request{.edits = round % 4 == 0 ? nullptr : &edits,
                               .num_candidates = 1 + static_cast<int32_t>(rng_() % kMostListed)};
      const size_t threads = 1 + rng_() % 3;
      expect_alike(by_pieces(request, scores, threads), whole(request, scores),
                   str_cat("vocabulary ", vocab, ", round ", round));
    }
  }
}

TEST_F(CandidateRowTest, SeesWhatIsNotANumberAndWhatIsForbidden) {
  RowEdits ban_all;
  ban_all.banned_ranges = {{0, 3000}};
  std::vector<float> scores(3000, 1.0f);
  const RowRequest plain{.num_candidates = 4};
  const RowRequest banned{.edits = &ban_all, .num_candidates = 4};
  expect_alike(by_pieces(banned, scores, 2), whole(banned, scores), "everything is banned");
  for (const float strange : {std::nanf(""), HUGE_VALF}) {
    scores[2500] = strange;
    EXPECT_EQ(by_pieces(plain, scores, 2).sample.token_id, kNotNumbers);
    expect_alike(by_pieces(plain, scores, 2), whole(plain, scores), "one is strange");
  }
  std::fill(scores.begin(), scores.end(), -HUGE_VALF);
  expect_alike(by_pieces(plain, scores, 2), whole(plain, scores), "no token has any probability");
}

TEST_F(CandidateRowTest, LeavesTheOthersToTheWholeRow) {
  RowEdits renormalized, many, forced, repeated, timed;
  renormalized.renormalize = true;
  many.banned.resize(1000);
  forced.forced_token = 3;
  repeated.repetition_penalty = 1.5f;
  timed.timestamp_begin = 5;
  for (const RowEdits* edits : {&renormalized, &many, &forced, &repeated, &timed}) {
    EXPECT_FALSE(is_listed_by_pieces({.edits = edits, .num_candidates = 4}));
  }
  EXPECT_FALSE(is_listed_by_pieces({.target_token = 1, .num_candidates = 4}));
  EXPECT_FALSE(is_listed_by_pieces({.num_candidates = 0}));
  EXPECT_FALSE(is_listed_by_pieces({.num_candidates = kMostListed + 1}));
}

}  // namespace
}  // namespace transept
