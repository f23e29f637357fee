#include "sampling/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using EarlyStopping = SamplingParams::EarlyStopping;

// "parent:token" of each continuation.
std::vector<std::string> names(const std::vector<BeamContinuation>& ways) {
  std::vector<std::string> list;
  list.reserve(ways.size());
  for (const BeamContinuation& way : ways)
    list.push_back(std::to_string(way.parent) + ":" + std::to_string(way.token_id));
  return list;
}

using Names = std::vector<std::string>;
constexpr int32_t kEos = 2;
constexpr auto is_eos = [](const BeamContinuation& way) { return way.token_id == kEos; };

TEST(BeamSearch, KeepsTheBestOfAllBeams) {
  const std::vector<TokenLogprob> a = {{7, -0.5f, 1}, {8, -2.0f, 2}}, b = {{9, -0.1f, 1}, {5, -0.2f, 2}};
  const std::vector<BeamRow> beams = {{-1.0, a}, {-1.5, b}};
  BeamStep step;
  beam_search(2, 2, beams, is_eos, step);
  EXPECT_EQ(names(step.running), (Names{"0:7", "1:9"}));
  EXPECT_TRUE(step.ended.empty());
  EXPECT_DOUBLE_EQ(step.running[1].sum, -1.5 + static_cast<double>(-0.1f));
  EXPECT_EQ(step.running[1].entry, 0);
  beam_search(3, 3, beams, is_eos, step);
  EXPECT_EQ(names(step.running), (Names{"0:7", "1:9", "1:5"}));
}

TEST(BeamSearch, AnEndCountsOnlyAmongTheBestOfAll) {
  // Ranks of all continuations: 0:7, 0:eos, 0:8, 1:eos.
  const std::vector<TokenLogprob> a = {{7, -0.1f, 1}, {kEos, -0.2f, 2}, {8, -0.3f, 3}};
  const std::vector<TokenLogprob> b = {{kEos, -0.1f, 1}, {4, -0.5f, 2}};
  const std::vector<BeamRow> beams = {{0.0, a}, {-1.0, b}};
  BeamStep step;
  beam_search(2, 2, beams, is_eos, step);
  EXPECT_EQ(names(step.running), (Names{"0:7", "0:8"}));
  EXPECT_EQ(names(step.ended), (Names{"0:2"}));
  beam_search(3, 3, beams, is_eos, step);  // 1:eos is the fourth of all: no hypothesis
  EXPECT_EQ(names(step.running), (Names{"0:7", "0:8", "1:4"}));
  EXPECT_EQ(names(step.ended), (Names{"0:2"}));
  beam_search(4, 4, beams, is_eos, step);
  EXPECT_EQ(names(step.ended), (Names{"0:2", "1:2"}));
}

TEST(BeamSearch, TiesGoToTheEarlierBeamAndTheLowerToken) {
  const std::vector<TokenLogprob> a = {{3, -1.0f, 1}, {8, -1.0f, 2}}, b = {{1, -1.0f, 1}};
  const std::vector<BeamRow> beams = {{-1.0, a}, {-1.0, b}};
  BeamStep step;
  beam_search(3, 3, beams, is_eos, step);
  EXPECT_EQ(names(step.running), (Names{"0:3", "0:8", "1:1"}));
}

TEST(BeamSearch, FewerGoOnWhereFewerHaveAnyProbability) {
  const std::vector<TokenLogprob> forced = {{6, 0.0f, 1}};
  const std::vector<BeamRow> beams = {{-1.0, forced}, {-2.0, {}}};
  BeamStep step;
  beam_search(4, 4, beams, is_eos, step);
  EXPECT_EQ(names(step.running), (Names{"0:6"}));
  beam_search(
      4, 4, beams, [](const BeamContinuation&) { return true; }, step);
  EXPECT_TRUE(step.running.empty());
  EXPECT_EQ(names(step.ended), (Names{"0:6"}));
}

TEST(BeamSearch, AsksAboutNoMoreThanItNeeds) {
  const std::vector<TokenLogprob> a = {{7, -0.1f, 1}, {8, -0.2f, 2}, {9, -0.3f, 3}};
  int asked = 0;
  BeamStep step;
  beam_search(
      1, 1, std::vector<BeamRow>{{0.0, a}}, [&](const BeamContinuation&) { return ++asked == 1; }, step);
  EXPECT_EQ(asked, 2);
}

TEST(BeamSearch, HypothesesAreNormalisedByLength) {
  EXPECT_DOUBLE_EQ(hypothesis_score(-6, 4, 1), -1.5);
  EXPECT_DOUBLE_EQ(hypothesis_score(-6, 4, 2), -0.375);
  EXPECT_DOUBLE_EQ(hypothesis_score(-6, 4, 0), -6);
  EXPECT_DOUBLE_EQ(hypothesis_score(-6, 4, -1), -24);
}

// transformers' _check_early_stop_heuristic and _beam_search_has_unfinished_sequences.
TEST(BeamSearch, StopsWhenNothingBetterCanCome) {
  BeamStopRule rule{2, 1.0f, EarlyStopping::kFalse, 10};
  EXPECT_FALSE(is_beam_search_done(rule, 1, -0.1, -99, 4));
  EXPECT_FALSE(is_beam_search_done(rule, 2, -1.0, -3.9, 4));
  EXPECT_TRUE(is_beam_search_done(rule, 2, -1.0, -4.0, 4));
  rule.early_stopping = EarlyStopping::kTrue;
  EXPECT_FALSE(is_beam_search_done(rule, 1, -0.1, -99, 4));
  EXPECT_TRUE(is_beam_search_done(rule, 2, -1.0, -0.1, 4));
  rule.early_stopping = EarlyStopping::kNever;  // the beam may still grow to 10 tokens
  EXPECT_FALSE(is_beam_search_done(rule, 2, -1.0, -9.9, 4));
  EXPECT_TRUE(is_beam_search_done(rule, 2, -1.0, -10.0, 4));
  rule.length_penalty = -1;  // length does not help: the present one counts
  EXPECT_TRUE(is_beam_search_done(rule, 2, -1.0, -0.3, 4));
  EXPECT_FALSE(is_beam_search_done(rule, 2, -1.0, -0.2, 4));
}

// openai-whisper's BeamSearchDecoder.update: whatever stands before the last that goes on.
TEST(PatienceSearch, AnEndCountsWhereItIsBetterThanTheLastThatGoesOn) {
  // Ranks of all continuations: 0:7, 1:eos, 2:eos, 0:8, 0:eos.
  const std::vector<TokenLogprob> a = {{7, -0.1f, 1}, {8, -0.4f, 2}, {kEos, -0.5f, 3}};
  const std::vector<TokenLogprob> b = {{kEos, -0.1f, 1}, {4, -0.9f, 2}}, c = {{kEos, -0.2f, 1}, {4, -0.9f, 2}};
  const std::vector<BeamRow> beams = {{0.0, a}, {-0.1, b}, {-0.1, c}};
  BeamStep step;
  beam_search(2, kAnyRank, beams, is_eos, step);
  EXPECT_EQ(names(step.running), (Names{"0:7", "0:8"}));
  EXPECT_EQ(names(step.ended), (Names{"1:2", "2:2"}));
  beam_search(3, kAnyRank, beams, is_eos, step);
  EXPECT_EQ(names(step.ended), (Names{"1:2", "2:2", "0:2"}));
}

// Python's round(num_beams * patience).
TEST(PatienceSearch, WaitsForSoManyAnswers) {
  EXPECT_EQ(num_patience_hypotheses(5, 1.0), 5);
  EXPECT_EQ(num_patience_hypotheses(5, 2.0), 10);
  EXPECT_EQ(num_patience_hypotheses(5, 0.5), 2);  // 2.5 goes to the even one
  EXPECT_EQ(num_patience_hypotheses(5, 0.7), 4);  // 3.5 as well
  EXPECT_EQ(num_patience_hypotheses(5, 0.3), 2);
  EXPECT_EQ(num_patience_hypotheses(5, 0.01), 1);
  EXPECT_GT(num_patience_hypotheses(5, 1e300), 1 << 16);
}

// MaximumLikelihoodRanker.
TEST(PatienceSearch, RanksByTheMeanOrByGooglesPenalty) {
  EXPECT_DOUBLE_EQ(likelihood_score(-6, 4, {}), -1.5);
  EXPECT_DOUBLE_EQ(likelihood_score(-6, 0, {}), -6);
  EXPECT_DOUBLE_EQ(likelihood_score(-6, 7, 1.0), -3);
  EXPECT_DOUBLE_EQ(likelihood_score(-6, 7, 0.0), -6);
  EXPECT_DOUBLE_EQ(likelihood_score(-6, 19, 0.5), -3);
}

}  // namespace
}  // namespace transept
