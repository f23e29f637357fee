// Proves that the rules leave the tokens that transformers' and openai-whisper's own code leaves
// (tests/make_timestamp_rules.py), of logits and of log-probabilities; and each rule by itself.
#include "sampling/timestamp_rules.h"
#include "sampling/build_row_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "base/json.h"
#include "base/source_dir_testing.h"
#include "base/thread_pool.h"
#include "ops/cpu_device.h"
#include "ops/softmax.h"
#include "sampling/choose.h"

namespace transept {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using Ids = std::vector<int32_t>;

// Text 0 to 3, the end 4, a special token 5, <|notimestamps|> 6, timestamps 7 to 11.
constexpr TimestampRules kRules = {.timestamp_begin = 7, .no_timestamps_token_id = 6, .eos_token_id = 4};

class TimestampRulesTest : public ::testing::Test {
 protected:
  Ids left(const SamplingParams& params, const Ids& generated, std::vector<float> scores) {
    RowEdits edits;
    build_row_edits(params, {.encoder_prompt = {}, .prompt = prompt_, .generated = generated}, edits);
    apply_edits(context_, edits, IdPlaces(0, scores.size()), scores);
    Ids ids;
    for (size_t id = 0; id < scores.size(); ++id) {
      if (std::isfinite(scores[id])) ids.push_back(static_cast<int32_t>(id));
    }
    return ids;
  }

  // Where the end token outweighs the five timestamps: what only bans leave.
  Ids left(const Ids& generated, std::optional<int32_t> max_initial = {}) {
    SamplingParams params;
    params.max_tokens = 99;
    params.timestamp_rules = kRules;
    params.timestamp_rules->max_initial_timestamp_index = max_initial;
    std::vector<float> scores(12, 0.0f);
    scores[4] = 9;
    return left(params, generated, scores);
  }

  Ids prompt_ = {9, 9};  // two timestamps
  ThreadPool threads_{1};
  Arena arena_{1 << 12};
  CpuDevice device_{threads_};
  Context context_{device_, arena_};
};

TEST_F(TimestampRulesTest, LookAtNothingBeforeTheAnswer) {
  for (const Ids& generated : {Ids{}, Ids{0}, Ids{0, 1}, Ids{8}, Ids{8, 0}}) {
    prompt_ = {9, 9};
    const Ids beside_timestamps = left(generated);
    for (const Ids& prompt : {Ids{9, 2}, Ids{2, 9}, Ids{10, 2, 2}}) {
      prompt_ = prompt;
      EXPECT_EQ(left(generated), beside_timestamps);
    }
  }
}

TEST_F(TimestampRulesTest, TheFirstTokenIsAnEarlyTimestamp) {
  EXPECT_THAT(left({}), ElementsAre(7, 8, 9, 10, 11));
  EXPECT_THAT(left({}, 0), ElementsAre(7));
  EXPECT_THAT(left({}, 2), ElementsAre(7, 8, 9));
  EXPECT_THAT(left({}, 99), ElementsAre(7, 8, 9, 10, 11));
  EXPECT_THAT(left({0}, 0), ElementsAre(0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11));  // the first alone
}

TEST_F(TimestampRulesTest, ThePromptDoesNotCount) {
  // It ends with two timestamps here, and text follows text all the same.
  EXPECT_THAT(left({0, 1}), ElementsAre(0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11));
}

TEST_F(TimestampRulesTest, WhatIsGivenCountsAsGenerated) {
  SamplingParams params;
  params.max_tokens = 99;
  params.timestamp_rules = kRules;
  std::vector<float> scores(12, 0.0f);
  scores[4] = 9;
  const auto left_after = [&](int32_t num_given, const Ids& generated) {  // of a prompt of 9, 9
    params.num_given_tokens = num_given;
    return left(params, generated, scores);
  };
  EXPECT_THAT(left_after(0, {}), ElementsAre(7, 8, 9, 10, 11));
  EXPECT_THAT(left_after(1, {}), ElementsAre(0, 1, 2, 3, 4, 5)) << "text behind the first timestamp";
  EXPECT_THAT(left_after(2, {}), ElementsAre(0, 1, 2, 3, 4, 5)) << "text behind a pair";
  EXPECT_THAT(left_after(9, {}), ElementsAre(0, 1, 2, 3, 4, 5)) << "there are only two";
  EXPECT_THAT(left_after(1, {0}), ElementsAre(0, 1, 2, 3, 4, 5, 10, 11)) << "not before what is given";
  EXPECT_THAT(left_after(0, {0}), ElementsAre(0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11));
}

TEST_F(TimestampRulesTest, AfterTheFirstTimestampAndAfterAPairComesNone) {
  EXPECT_THAT(left({8}), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(left({7, 0, 9, 9}), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(TimestampRulesTest, AfterOneThatFollowsTextComesAnotherOrTheEnd) {
  EXPECT_THAT(left({7, 0, 9}), ElementsAre(4, 5, 9, 10, 11));  // the same time may begin the next segment
}

TEST_F(TimestampRulesTest, ASegmentIsNotEmptyAndTimeDoesNotGoBack) {
  EXPECT_THAT(left({8, 0}), ElementsAre(0, 1, 2, 3, 4, 5, 9, 10, 11));
  EXPECT_THAT(left({8, 0, 10, 10, 1, 2}), ElementsAre(0, 1, 2, 3, 4, 5, 11));
  EXPECT_THAT(left({11, 0, 8, 1}), ElementsAre(0, 1, 2, 3, 4, 5, 9, 10, 11));  // of a prefix: the last one counts
  EXPECT_THAT(left({8, 11, 0}), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(TimestampRulesTest, NoTimestampsIsNeverThere) {
  for (const Ids& generated : {Ids{}, Ids{7}, Ids{7, 0}, Ids{7, 0, 9}}) {
    EXPECT_THAT(left(generated), Not(Contains(6)));
  }
}

TEST_F(TimestampRulesTest, TimestampsOutweighTextTogether) {
  SamplingParams params;
  params.max_tokens = 99;
  params.timestamp_rules = kRules;
  std::vector<float> scores(12, 0.0f);
  scores[2] = std::log(5.0f) + 0.01f;  // just likelier than all five
  EXPECT_THAT(left(params, {0}, scores), ElementsAre(0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11));
  scores[2] = std::log(5.0f) - 0.01f;
  EXPECT_THAT(left(params, {0}, scores), ElementsAre(7, 8, 9, 10, 11));
  scores[2] = std::log(4.0f) + 0.01f;  // of the four that may come
  EXPECT_THAT(left(params, {7, 0}, scores), ElementsAre(0, 1, 2, 3, 4, 5, 8, 9, 10, 11));
  params.suppress_tokens = {2};  // suppressed before it is weighed
  EXPECT_THAT(left(params, {7, 0}, scores), ElementsAre(8, 9, 10, 11));
}

TEST_F(TimestampRulesTest, NothingLeftAndNoNumbersAreNobodysCrash) {
  SamplingParams params;
  params.max_tokens = 99;
  params.timestamp_rules = kRules;
  EXPECT_THAT(left(params, {0}, std::vector<float>(12, -INFINITY)), ElementsAre());
  EXPECT_THAT(left(params, {0}, std::vector<float>(12, NAN)), ElementsAre());
  EXPECT_THAT(left(params, {0}, std::vector<float>(5, 1.0f)), ElementsAre(0, 1, 2, 3, 4));  // no timestamps at all
  params.timestamp_rules->timestamp_begin = 0;
  EXPECT_THAT(left(params, {}, std::vector<float>(3, 1.0f)), ElementsAre(0, 1, 2));
}

Ids ids_of(const Json& list) {
  Ids ids;
  for (const Json& id : list.as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

TEST_F(TimestampRulesTest, LeavesWhatTheReferencesLeave) {
  std::ifstream file(source_dir() + "/src/sampling/testdata/timestamp_rules.jsonl");
  int num_rows = 0;
  for (std::string text; std::getline(file, text); ++num_rows) {
    const Json line = std::move(Json::parse(text).value());
    SamplingParams params;
    params.max_tokens = 99;
    params.suppress_tokens = ids_of(*line.find("suppressed"));
    params.timestamp_rules = {.timestamp_begin = 13, .no_timestamps_token_id = 12, .eos_token_id = 8};
    if (const Json* index = line.find("max_initial_timestamp_index"); index != nullptr) {
      params.timestamp_rules->max_initial_timestamp_index = static_cast<int32_t>(index->as_int());
    }
    std::vector<float> logits;
    for (const int32_t logit : ids_of(*line.find("logits"))) logits.push_back(static_cast<float>(logit) / 16);
    const Ids generated = ids_of(*line.find("generated")), expected = ids_of(*line.find("left"));
    EXPECT_EQ(left(params, generated, logits), expected) << "line " << num_rows + 1;
    const float normalizer = log_sum_exp(context_, logits);
    for (float& logit : logits) logit -= normalizer;  // a beam's row
    EXPECT_EQ(left(params, generated, logits), expected) << "line " << num_rows + 1 << ", log-probabilities";
  }
  EXPECT_EQ(num_rows, 240);
}

}  // namespace
}  // namespace transept
