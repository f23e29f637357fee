#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/allocation_count_testing.h"
#include "speculation/ngram_drafter.h"
#include "speculation/random_drafter.h"
#include "speculation/text_drafter.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Ids = std::vector<int32_t>;

Ids propose(Drafter& drafter, const DraftAsk& ask, DraftMemory& memory) {
  Ids draft;
  drafter.propose(ask, memory, draft);
  return draft;
}

// The decoder's prompt is one token.
DraftAsk ask_of(const Ids& tokens, const Ids& given, int32_t max_tokens = 4) {
  DraftAsk ask;
  ask.tokens = tokens;
  ask.num_prompt = 1;
  ask.given = given;
  ask.max_tokens = max_tokens;
  return ask;
}

// ---- A text that is followed

TEST(TextDrafter, DraftsWhatFollowsInTheText) {
  TextDrafter drafter(TextDrafter::Text::kGiven);
  DraftMemory memory;
  const Ids given = {10, 11, 12, 13, 14, 15};
  EXPECT_THAT(propose(drafter, ask_of({1}, given), memory), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(propose(drafter, ask_of({1, 10, 11}, given), memory), ElementsAre(12, 13, 14, 15));
  EXPECT_THAT(propose(drafter, ask_of({1, 10, 11, 12, 13, 14}, given), memory), ElementsAre(15));
  EXPECT_THAT(propose(drafter, ask_of({1, 10, 11, 12, 13, 14, 15}, given), memory), IsEmpty());
}

TEST(TextDrafter, AfterADifferenceOneTokenStandsForOne) {
  TextDrafter drafter(TextDrafter::Text::kGiven);
  DraftMemory memory;
  const Ids given = {10, 11, 12, 13, 14, 15};
  EXPECT_THAT(propose(drafter, ask_of({1, 10, 99}, given), memory), ElementsAre(12, 13, 14, 15));
  EXPECT_THAT(propose(drafter, ask_of({1, 10, 99, 12}, given), memory), ElementsAre(13, 14, 15));
  EXPECT_EQ(memory.num_lost, 0);
}

TEST(TextDrafter, FindsTheTextAgainByTwoTokens) {
  TextDrafter drafter(TextDrafter::Text::kGiven);
  const Ids given = {10, 11, 12, 13, 14, 15, 16, 17};
  DraftMemory left_out, put_in, far_away;
  EXPECT_THAT(propose(drafter, ask_of({1, 10, 14, 15}, given), left_out), ElementsAre(16, 17));
  EXPECT_THAT(propose(drafter, ask_of({1, 10, 98, 99, 11, 12}, given), put_in), ElementsAre(13, 14, 15, 16));
  // Lost for too long, it waits until it finds the text.
  const Ids lost = {1, 10, 90, 91, 92, 93, 94};
  EXPECT_THAT(propose(drafter, ask_of(lost, given), far_away), IsEmpty());
  const Ids found = {1, 10, 90, 91, 92, 93, 94, 14, 15};
  EXPECT_THAT(propose(drafter, ask_of(found, given), far_away), ElementsAre(16, 17));
}

// Never before the old place: a text that repeats itself goes on.
TEST(TextDrafter, LooksBehindTheOldPlaceAlone) {
  TextDrafter drafter(TextDrafter::Text::kGiven);
  DraftMemory memory;
  const Ids given = {10, 11, 20, 10, 11, 30, 10, 11, 40};
  const Ids tokens = {1, 10, 11, 20, 10, 11, 30, 99, 10, 11};
  EXPECT_THAT(propose(drafter, ask_of(tokens, given), memory), ElementsAre(40));
}

TEST(TextDrafter, CopiesTheSource) {
  TextDrafter drafter(TextDrafter::Text::kSource);
  DraftMemory memory;
  const Ids source = {10, 11, 12}, tokens = {1};
  DraftAsk ask = ask_of(tokens, {});
  ask.source = source;
  EXPECT_THAT(propose(drafter, ask, memory), ElementsAre(10, 11, 12));
  ask.source = {};
  EXPECT_THAT(propose(drafter, ask, memory), IsEmpty());
}

// ---- N-grams

TEST(NgramDrafter, TheLongestRunAndOfSeveralTheLatestWins) {
  NgramDrafter drafter(1, 3);
  DraftMemory memory;
  EXPECT_THAT(propose(drafter, ask_of({1, 5, 6, 7, 8, 5, 6, 7}, {}), memory), ElementsAre(8, 5, 6, 7));
  EXPECT_THAT(propose(drafter, ask_of({1, 5, 20, 5, 30, 5}, {}), memory), ElementsAre(30, 5));
  EXPECT_THAT(propose(drafter, ask_of({1, 4, 5, 20, 9, 5, 30, 4, 5}, {}, 1), memory), ElementsAre(20));
  EXPECT_THAT(propose(drafter, ask_of({1, 2, 3}, {}), memory), IsEmpty());
}

TEST(NgramDrafter, ShortRunsAreNone) {
  NgramDrafter drafter(2, 3);
  DraftMemory memory;
  EXPECT_THAT(propose(drafter, ask_of({1, 5, 20, 5}, {}), memory), IsEmpty());
  EXPECT_THAT(propose(drafter, ask_of({1, 4, 5, 20, 4, 5}, {}, 1), memory), ElementsAre(20));
}

TEST(NgramDrafter, TheSourceGivesWhatTheSequenceHasNot) {
  NgramDrafter drafter(1, 3);
  DraftMemory memory;
  const Ids source = {40, 5, 6, 7, 8}, tokens = {1, 9, 5, 9, 5, 6};
  DraftAsk ask = ask_of(tokens, {});
  ask.source = source;
  EXPECT_THAT(propose(drafter, ask, memory), ElementsAre(7, 8)) << "two tokens there, none here";
  const Ids both = {1, 5, 6, 70, 5, 6};
  ask.tokens = both;
  EXPECT_THAT(propose(drafter, ask, memory), ElementsAre(70, 5, 6)) << "its own come first";
}

// ---- Test drafts

TEST(RandomDrafter, IsRightAsOftenAsItWasAskedToBe) {
  const Ids given(4000, 3);
  for (const double truth : {0.0, 0.3, 0.8, 1.0}) {
    RandomDrafter drafter({.truth = truth, .has_random_length = false, .seed = 5, .vocab_size = 100});
    DraftMemory memory;
    const Ids tokens = {1};
    const Ids draft = propose(drafter, ask_of(tokens, given, 4000), memory);
    ASSERT_EQ(draft.size(), 4000u);
    const auto num_right = static_cast<double>(std::ranges::count(draft, 3));
    EXPECT_NEAR(num_right / 4000, truth, 0.03);
    for (const int32_t id : draft) EXPECT_TRUE(id >= 0 && id < 100);
    EXPECT_EQ(propose(drafter, ask_of(tokens, given, 4000), memory), draft) << "the same again";
  }
}

TEST(RandomDrafter, LengthsGoFromNoneToTheMost) {
  RandomDrafter drafter({.truth = 1, .seed = 1, .vocab_size = 100});
  std::set<size_t> lengths;
  Ids tokens = {1};
  const Ids given(100, 3);
  for (int i = 0; i < 99; ++i) {
    DraftMemory memory;
    lengths.insert(propose(drafter, ask_of(tokens, given, 3), memory).size());
    tokens.push_back(3);
  }
  EXPECT_THAT(lengths, ElementsAre(0, 1, 2, 3));
}

TEST(RandomDrafter, LearnsWhatFollowsTwoTokens) {
  RandomDrafter drafter({.truth = 1, .has_random_length = false, .vocab_size = 1000});
  DraftMemory first, second;
  propose(drafter, ask_of({1, 10, 11, 12, 13, 14}, {}), first);
  EXPECT_THAT(propose(drafter, ask_of({1, 10, 11}, {}, 3), second), ElementsAre(12, 13, 14));
}

TEST(Drafters, AllocateNothingOnceTheDraftHasRoom) {
  TextDrafter text(TextDrafter::Text::kGiven);
  NgramDrafter ngram(2, 3);
  RandomDrafter random({.truth = 1, .has_random_length = false, .vocab_size = 1000});
  Ids tokens(500, 7), given(500, 7), draft;
  draft.reserve(16);
  const DraftAsk ask = ask_of(tokens, given, 16);
  for (Drafter* drafter : std::initializer_list<Drafter*>{&text, &ngram, &random}) {
    DraftMemory memory;
    const int64_t before = testing::num_allocations();
    drafter->propose(ask, memory, draft);
    EXPECT_EQ(testing::num_allocations(), before);
  }
}

}  // namespace
}  // namespace transept
