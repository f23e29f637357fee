#include "speculation/speculation_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

TEST(SpeculativeConfig, HasTheNamesOfVllm) {
  const SpeculationOptions options =
      parse_speculative_config(
          R"({"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4, "prompt_lookup_min": 1})")
          .value();
  EXPECT_EQ(options.method, DraftMethod::kNgram);
  EXPECT_EQ(options.most_tokens(false), 5);
  EXPECT_EQ(options.most_tokens(true), 5);
  EXPECT_EQ(options.prompt_lookup_max, 4);
  EXPECT_EQ(options.prompt_lookup_min, 1);
  EXPECT_TRUE(options.is_adaptive);
}

TEST(SpeculativeConfig, WhatIsLeftOutHasADefault) {
  EXPECT_EQ(parse_speculative_config("{}")->method, DraftMethod::kGiven);
  EXPECT_EQ(parse_speculative_config("{}")->most_tokens(true), 16);
  EXPECT_EQ(parse_speculative_config(R"({"prompt_lookup_max": 4})")->method, DraftMethod::kNgram);
  EXPECT_EQ(parse_speculative_config(R"({"prompt_lookup_max": 1})")->prompt_lookup_min, 1);
  EXPECT_EQ(parse_speculative_config(R"({"prompt_lookup_min": 5})")->prompt_lookup_max, 5);
  EXPECT_EQ(parse_speculative_config(R"({"method": "ngram"})")->most_tokens(false), 4);
  EXPECT_EQ(parse_speculative_config(R"({"method": "ngram"})")->most_tokens(true), 16);
  EXPECT_EQ(parse_speculative_config(R"({"method": "copy"})")->most_tokens(false), 16);
  EXPECT_FALSE(parse_speculative_config(R"({"method": "random", "truth": 0.3, "seed": 7})")->is_adaptive);
}

TEST(SpeculativeConfig, AModelHasAName) {
  for (const char* method : {R"("method": "model", )", R"("method": "draft_model", )", ""}) {
    const auto options =
        parse_speculative_config(str_cat("{", method, R"("model": "a/b", "num_speculative_tokens": 3})"));
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->method, DraftMethod::kModel);
    EXPECT_EQ(options->model, "a/b");
    EXPECT_EQ(options->most_tokens(false), 3);
    EXPECT_FALSE(options->truth.has_value());
    EXPECT_EQ(parse_speculative_config(str_cat("{", method, R"("model": "a", "truth": 0.5})"))->truth, 0.5);
  }
  EXPECT_EQ(parse_speculative_config(R"({"model": "a/b"})")->most_tokens(false), 4);
  EXPECT_EQ(parse_speculative_config(R"({"model": "a/b"})")->most_tokens(true), 16);
}

TEST(SpeculativeConfig, BadInputIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "--speculative-config: "},
      {"ngram", "--speculative-config: "},
      {"[1]", "expected a JSON object, not a list"},
      {R"({"methods": "ngram"})", "\"methods\": unknown; known are method,"},
      {R"({"": 1})", "\"\": unknown"},
      {R"({"method": 3})", "method: expected a text, not a number"},
      {R"({"method": "guess"})", "method: expected given, ngram, copy, model or random, not \"guess\""},
      {R"({"method": "eagle3"})", "\"eagle3\" is not supported"},
      {R"({"method": "mtp", "model": "x"})", "\"mtp\" is not supported"},
      {R"({"method": "model"})", "model: method model needs it"},
      {R"({"method": "draft_model", "num_speculative_tokens": 4})", "model: method model needs it"},
      {R"({"method": "model", "model": 7})", "model: expected a text, not a number"},
      {R"({"method": "model", "model": ""})", "model: expected a folder or a name"},
      {R"({"method": "ngram", "model": "tiny"})", "model: only method model has it"},
      {R"({"model": "tiny", "prompt_lookup_max": 2})", "prompt_lookup_max: only method ngram has it"},
      {R"({"num_speculative_tokens": -1})", "num_speculative_tokens: expected a whole number from 1 to 64, not -1"},
      {R"({"num_speculative_tokens": 0})", "from 1 to 64, not 0"},
      {R"({"num_speculative_tokens": 1000000000})", "not 1000000000"},
      {R"({"num_speculative_tokens": 99999999999999999999})", "not 99999999999999999999"},
      {R"({"num_speculative_tokens": 2.5})", "not a number"},
      {R"({"num_speculative_tokens": "4"})", "not a string"},
      {R"({"num_speculative_tokens": null})", "not null"},
      {R"({"prompt_lookup_max": 17})", "prompt_lookup_max: expected a whole number from 1 to 16, not 17"},
      {R"({"prompt_lookup_max": 2, "prompt_lookup_min": 3})",
       "prompt_lookup_min: 3 is more than prompt_lookup_max (2)"},
      {R"({"method": "copy", "prompt_lookup_max": 2})", "prompt_lookup_max: only method ngram has it"},
      {R"({"method": "ngram", "truth": 1})", "truth: only method random has it"},
      {R"({"model": "a", "seed": 1})", "seed: only method random has it"},
      {R"({"method": "random", "truth": 1.5})", "truth: expected a number from 0 to 1"},
      {R"({"method": "random", "seed": -1})", "seed: expected a whole number"},
  };
  for (const auto& [text, why] : cases) {
    const auto options = parse_speculative_config(text);
    ASSERT_FALSE(options.ok()) << text;
    EXPECT_THAT(error_message(options.status()), HasSubstr(why)) << text;
    EXPECT_THAT(error_message(options.status()), HasSubstr("--speculative-config")) << text;
  }
  EXPECT_EQ(parse_speculative_config(R"({"method": "medusa"})").status().code(), absl::StatusCode::kUnimplemented);
}

TEST(SpeculativeConfig, TheNumberMayBeAFlagOfItsOwn) {
  EXPECT_EQ(settle_speculation("", 7)->most_tokens(true), 7);
  EXPECT_EQ(settle_speculation(R"({"method": "copy"})", 7)->most_tokens(false), 7);
  EXPECT_EQ(settle_speculation(R"({"num_speculative_tokens": 7})", 7)->most_tokens(false), 7);
  EXPECT_EQ(settle_speculation("", std::nullopt)->method, DraftMethod::kGiven);
  EXPECT_THAT(error_message(settle_speculation(R"({"num_speculative_tokens": 8})", 7).status()),
              HasSubstr("--num-speculative-tokens 7: --speculative-config says 8"));
  EXPECT_EQ(settle_speculation("", 0)->most_tokens(true), 0);
  for (const int64_t count : {int64_t{-1}, int64_t{65}, int64_t{1'000'000'000}}) {
    EXPECT_FALSE(settle_speculation("", count).ok()) << count;
  }
}

}  // namespace
}  // namespace transept
