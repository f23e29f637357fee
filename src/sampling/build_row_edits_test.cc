// Proves what each penalty and constraint does to the next token, on histories small enough to work out by hand.
#include "sampling/build_row_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/thread_pool.h"
#include "ops/cpu_device.h"
#include "sampling/choose.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

struct History {
  std::vector<int32_t> encoder, prompt, generated;
  RowHistory view() const { return {encoder, prompt, generated}; }
};

RowEdits edits_of(const SamplingParams& params, const History& history) {
  RowEdits edits;
  build_row_edits(params, history.view(), edits);
  return edits;
}

void apply_to(const RowEdits& edits, std::span<float> scores) {
  ThreadPool threads(1);
  Arena arena(1 << 12);
  CpuDevice device(threads);
  apply_edits(Context{device, arena}, edits, IdPlaces(0, scores.size()), scores);
}

TEST(RowEdits, PlainGreedyEditsNothing) {
  SamplingParams params;
  params.max_tokens = 8;
  params.eos_token_ids = {2};
  EXPECT_TRUE(edits_of(params, {{}, {2, 0}, {5}}).empty());
}

// Penalties and n-grams of a prompt whose ids go past the output layer's leave those out.
TEST(RowEdits, IdsWithoutAnOutputAreNotEdited) {
  SamplingParams params;
  params.max_tokens = 8;
  params.repetition_penalty = 1.5f;
  params.no_repeat_ngram_size = 2;
  const History history{{}, {4, 40, 4, 39, 4}, {}};
  RowHistory view = history.view();
  RowEdits edits;
  build_row_edits(params, view, edits);
  EXPECT_THAT(edits.seen, ElementsAre(4, 39, 40));
  EXPECT_THAT(edits.banned, UnorderedElementsAre(39, 40));
  view.vocab_size = 40;
  build_row_edits(params, view, edits);
  EXPECT_THAT(edits.seen, ElementsAre(4, 39));
  EXPECT_THAT(edits.banned, ElementsAre(39));
}

TEST(RowEdits, MinTokensForbidsEndTokensAndStopIdsUntilThere) {
  SamplingParams params;
  params.max_tokens = 8;
  params.min_tokens = params.min_tokens_before_eos = 2;
  params.eos_token_ids = {2};
  params.stop_token_ids = {9};
  EXPECT_THAT(edits_of(params, {{}, {2}, {5}}).banned, ElementsAre(2, 9));
  EXPECT_THAT(edits_of(params, {{}, {2}, {5, 6}}).banned, IsEmpty());
}

TEST(RowEdits, TheModelsMinLengthForbidsEndTokensOnly) {
  SamplingParams params;
  params.max_tokens = 8;
  params.min_tokens_before_eos = 2;
  params.eos_token_ids = {2};
  params.stop_token_ids = {9};
  EXPECT_THAT(edits_of(params, {{}, {2}, {5}}).banned, ElementsAre(2));
}

TEST(RowEdits, NgramBanSeesPromptAndGeneratedAcrossTheirBorder) {
  SamplingParams params;
  params.max_tokens = 8;
  params.no_repeat_ngram_size = 2;
  // The pairs so far: (2,7) (7,8) (8,7); after 7 neither 8 may come again.
  EXPECT_THAT(edits_of(params, {{}, {2, 7}, {8, 7}}).banned, ElementsAre(8));
  params.no_repeat_ngram_size = 1;
  EXPECT_THAT(edits_of(params, {{}, {2, 7}, {8}}).banned, UnorderedElementsAre(2, 7, 8));
  params.no_repeat_ngram_size = 4;
  EXPECT_THAT(edits_of(params, {{}, {2}, {8}}).banned, IsEmpty());
}

TEST(RowEdits, EncoderNgramsMayNotAppearInTheAnswer) {
  SamplingParams params;
  params.max_tokens = 8;
  params.encoder_no_repeat_ngram_size = 2;
  EXPECT_THAT(edits_of(params, {{4, 5, 6, 5, 9}, {2}, {5}}).banned, UnorderedElementsAre(6, 9));
}

TEST(RowEdits, BadWordsBanTheirLastTokenAfterTheOthersOfTheAnswer) {
  SamplingParams params;
  params.max_tokens = 8;
  params.bad_words_ids = {{3}, {5, 6}, {2, 4}};
  EXPECT_THAT(edits_of(params, {{}, {2}, {5}}).banned, ElementsAre(3, 6));  // the 2 of the prompt does not count
  EXPECT_THAT(edits_of(params, {{}, {2}, {}}).banned, ElementsAre(3));
}

TEST(RowEdits, SuppressionAtTheBeginningOnly) {
  SamplingParams params;
  params.max_tokens = 8;
  params.suppress_tokens = {7};
  params.begin_suppress_tokens = {8};
  EXPECT_THAT(edits_of(params, {{}, {2, 0}, {}}).banned, ElementsAre(7, 8));
  EXPECT_THAT(edits_of(params, {{}, {2, 0}, {1}}).banned, ElementsAre(7));
  // One later where a bos is forced before it.
  params.forced_bos_token_id = 3;
  EXPECT_THAT(edits_of(params, {{}, {2}, {}}).banned, ElementsAre(7));
  EXPECT_THAT(edits_of(params, {{}, {2}, {3}}).banned, ElementsAre(7, 8));
}

TEST(RowEdits, ForcedBosActsAfterAPromptOfOneTokenOnly) {
  SamplingParams params;
  params.max_tokens = 8;
  params.forced_bos_token_id = 3;
  EXPECT_EQ(edits_of(params, {{}, {2}, {}}).forced_token, 3);
  EXPECT_EQ(edits_of(params, {{}, {2}, {3}}).forced_token, -1);
  EXPECT_EQ(edits_of(params, {{}, {2, 0}, {}}).forced_token, -1);
}

TEST(RowEdits, ForcedEosActsAtTheLastTokenOnly) {
  SamplingParams params;
  params.max_tokens = 3;
  params.forced_eos_token_ids = {2};
  EXPECT_EQ(edits_of(params, {{}, {2, 0}, {5}}).forced_token, -1);
  EXPECT_EQ(edits_of(params, {{}, {2, 0}, {5, 6}}).forced_token, 2);
}

TEST(ApplyEdits, PenaltiesInTheReferencesOrder) {
  SamplingParams params;
  params.max_tokens = 8;
  params.logit_bias = {{0, 1.0f}};
  params.repetition_penalty = 2.0f;
  params.frequency_penalty = 0.5f;
  params.presence_penalty = 0.25f;
  std::vector<float> scores = {1.0f, -1.0f, 4.0f, 3.0f};
  apply_to(edits_of(params, {{}, {1}, {0, 0, 2}}), scores);
  EXPECT_FLOAT_EQ(scores[0], (1.0f + 1.0f) / 2.0f - 2 * 0.5f - 0.25f);  // bias, divided, twice generated
  EXPECT_FLOAT_EQ(scores[1], -1.0f * 2.0f);                             // prompt only: repetition alone, multiplied
  EXPECT_FLOAT_EQ(scores[2], 4.0f / 2.0f - 0.5f - 0.25f);
  EXPECT_FLOAT_EQ(scores[3], 3.0f);
}

TEST(ApplyEdits, AForcedTokenHasLogProbabilityZeroAndAllOthersNone) {
  RowEdits edits;
  edits.banned = {1};
  edits.forced_token = 1;
  std::vector<float> scores = {5.0f, 6.0f, 7.0f};
  apply_to(edits, scores);
  EXPECT_EQ(scores[1], 0.0f);
  EXPECT_TRUE(std::isinf(scores[0]) && std::isinf(scores[2]));
}

// Which ids are left of nine equal scores.
std::vector<int32_t> left(const RowEdits& edits) {
  std::vector<float> scores(9, 1.0f);
  apply_to(edits, scores);
  std::vector<int32_t> ids;
  for (size_t id = 0; id < scores.size(); ++id) {
    if (std::isfinite(scores[id])) ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

TEST(ApplyEdits, OnlyAllowedTokensAreLeft) {
  SamplingParams params;
  params.max_tokens = 8;
  params.allowed_token_ids = {0, 3, 4, 8};
  EXPECT_FALSE(edits_of(params, {{}, {2}, {}}).empty());
  EXPECT_THAT(left(edits_of(params, {{}, {2}, {}})), ElementsAre(0, 3, 4, 8));
  params.allowed_token_ids = {1, 7};
  EXPECT_THAT(left(edits_of(params, {{}, {2}, {5}})), ElementsAre(1, 7));
  params.suppress_tokens = {7};  // what is allowed may be banned all the same
  EXPECT_THAT(left(edits_of(params, {{}, {2}, {5}})), ElementsAre(1));
  params.forced_bos_token_id = 5;  // and what is not may be forced
  EXPECT_THAT(left(edits_of(params, {{}, {2}, {}})), ElementsAre(5));
}

TEST(RowEdits, BeamsWithPatienceAreNormalisedAgain) {
  SamplingParams params;
  params.max_tokens = 8;
  EXPECT_FALSE(edits_of(params, {{}, {2}, {}}).renormalize);
  params.patience = 1;
  EXPECT_TRUE(edits_of(params, {{}, {2}, {}}).renormalize);
}

}  // namespace
}  // namespace transept
