#include "speculation/draft_length.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

// Steps of one sequence whose rows cost `per_draft` of a step more each.
void measure(DraftLength& length, int32_t num_seqs, double per_draft, int32_t most) {
  for (int i = 0; i < 8; ++i) {
    for (int32_t k = most; k >= 0; --k) length.count(num_seqs, k * num_seqs, 0.001 * (1 + per_draft * k));
  }
}

TEST(DraftLength, MeasuresStepsWithoutDraftsFirst) {
  DraftLength length(true);
  Acceptance acceptance;
  EXPECT_EQ(length.choose(1, 4, acceptance), 0);
  for (int i = 0; i < 3; ++i) length.count(1, 0, 0.001);
  EXPECT_EQ(length.choose(1, 4, acceptance), 4) << "what was never measured is tried";
  EXPECT_EQ(length.choose(8, 4, acceptance), 0) << "a batch of other steps";
}

TEST(DraftLength, FollowsAcceptanceAndCost) {
  DraftLength cheap(true), dear(true);
  measure(cheap, 1, 0.04, 16);
  measure(dear, 1, 0.5, 16);
  Acceptance good{.share = 0.95, .weight = 50}, middling{.share = 0.5, .weight = 50};
  EXPECT_GE(cheap.choose(1, 16, good), 12);
  EXPECT_LE(cheap.choose(1, 16, middling), 4);
  EXPECT_GE(cheap.choose(1, 16, middling), 2);
  EXPECT_LE(dear.choose(1, 16, good), 8);
  EXPECT_EQ(dear.choose(1, 16, middling), 0) << "a row that costs half a step and is right half the time";
  EXPECT_EQ(cheap.choose(1, 1, good), 1) << "the ceiling";
  EXPECT_EQ(cheap.choose(1, 0, good), 0);
}

// Each row of a large batch costs what it computes.
TEST(DraftLength, EndsByItselfInLargeBatches) {
  DraftLength length(true);
  measure(length, 1, 0.05, 4);
  measure(length, 32, 0.9, 4);
  Acceptance acceptance{.share = 0.8, .weight = 50};
  EXPECT_EQ(length.choose(1, 4, acceptance), 4);
  EXPECT_EQ(length.choose(32, 4, acceptance), 0);
}

TEST(DraftLength, WhatNeverPaysIsTriedMoreAndMoreSeldom) {
  DraftLength length(true);
  measure(length, 1, 0.05, 4);
  Acceptance acceptance{.share = 0, .weight = 50};
  int32_t num_tries = 0;
  for (int i = 0; i < 2000; ++i) {
    const int32_t k = length.choose(1, 4, acceptance);
    EXPECT_LE(k, 1);
    length.count(1, k, k == 0 ? 0.001 : 0.00105);
    if (k == 0) continue;
    ++num_tries;
    acceptance.count(k, 0, 16);
  }
  EXPECT_GE(num_tries, 8);
  EXPECT_LE(num_tries, 15);
}

// The first step of so many rows warms caches up.
TEST(DraftLength, OneSlowStepSaysNothing) {
  DraftLength length(true);
  Acceptance acceptance{.share = 0.8, .weight = 50};
  for (int i = 0; i < 3; ++i) length.count(1, 0, 0.001);
  for (const double milliseconds : {9.0, 1.2, 1.2, 1.2}) {
    EXPECT_EQ(length.choose(1, 4, acceptance), 4);
    length.count(1, 4, milliseconds / 1000);
  }
  EXPECT_EQ(length.choose(1, 4, acceptance), 4);
}

// Somebody else had the machine while the most drafts were run.
TEST(DraftLength, WhatOthersTookIsForgotten) {
  DraftLength length(true);
  Acceptance acceptance{.share = 0.8, .weight = 50};
  int32_t num_slow = 0, num_full = 0;
  for (int i = 0; i < 600; ++i) {
    const int32_t k = length.choose(1, 4, acceptance);
    const bool is_slow = k == 4 && i >= 50 && i < 80;
    num_slow += is_slow ? 1 : 0;
    length.count(1, k, 0.001 * (1 + 0.05 * k) * (is_slow ? 3 : 1));
    if (i >= 150) num_full += k == 4 ? 1 : 0;
  }
  EXPECT_GE(num_slow, 1);
  EXPECT_LT(num_slow, 30) << "it was not left";
  EXPECT_GE(num_full, 445) << "of 450 steps";
}

// What is dear is tried again, but seldom.
TEST(DraftLength, WhatIsDearIsTriedSeldom) {
  DraftLength length(true);
  Acceptance acceptance{.share = 0.8, .weight = 50};
  double spent = 0, bare = 0;
  for (int i = 0; i < 2000; ++i) {
    const int32_t k = length.choose(32, 4, acceptance);
    const double cost = 0.001 * (1 + 0.9 * k);  // a row costs what it computes
    length.count(32, k * 32, cost);
    double tokens = 0, power = 1;
    for (int32_t j = 0; j <= k; ++j, power *= 0.8) tokens += power;
    spent += cost;
    bare += 0.001 * tokens;
  }
  EXPECT_LT(spent, 1.02 * bare);
}

TEST(DraftLength, AFixedLengthAsksNoClock) {
  DraftLength length(false);
  Acceptance acceptance{.share = 0, .weight = 50};
  EXPECT_EQ(length.choose(1, 7, acceptance), 7);
}

TEST(Acceptance, IsTheMeanOfWhatWasTold) {
  Acceptance acceptance{.share = 0.7, .weight = 2};
  acceptance.count(4, 0, 16);  // one was wrong; those behind it say nothing
  EXPECT_NEAR(acceptance.share, 1.4 / 3, 1e-9);
  acceptance.count(4, 4, 16);
  EXPECT_NEAR(acceptance.share, 5.4 / 7, 1e-9);
  for (int i = 0; i < 200; ++i) acceptance.count(2, 1, 16);
  EXPECT_NEAR(acceptance.share, 0.5, 0.05);
}

}  // namespace
}  // namespace transept
