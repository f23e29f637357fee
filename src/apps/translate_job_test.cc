// How answers become lines of a file.
#include "apps/translate_job.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(AsOneLine, KeepsALineForALine) {
  EXPECT_EQ(as_one_line("a\nb\r\nc"), "a b  c");
  EXPECT_EQ(as_one_line("\xE2\x80\xA8 x"), "\xE2\x80\xA8 x");  // U+2028 ends no line of a file
  EXPECT_EQ(as_one_line(""), "");
}

TEST(NBestLine, IsMoses) {
  EXPECT_EQ(n_best_line(0, "ein Haus", -0.25), "0 ||| ein Haus ||| -0.250000");
  EXPECT_EQ(n_best_line(12345678901, "a\nb", 0), "12345678901 ||| a b ||| 0.000000");
}

TEST(TranslateJob, AFailedLineLeavesAnEmptyLineButNoneInANumberedList) {
  const JobItem item{.id = Json("a.txt:3"), .index = 2, .line_end = "\r\n"};
  TranslateJob lines(TextLines::open({}).value(), {});
  EXPECT_EQ(lines.failure(item, absl::OutOfRangeError("too long")), "\r\n");
  TranslateJob::Options options;
  options.n_best = 2;
  TranslateJob numbered(TextLines::open({}).value(), std::move(options));
  EXPECT_EQ(numbered.failure(item, absl::OutOfRangeError("too long")), "");
}

TEST(TranslateJob, AnswersAreRankedByTheirBeamsScoreElseByTheMeanOfTheirTokens) {
  RequestOutput output;
  output.outputs.resize(2);
  output.outputs[0].text = "x";
  output.outputs[0].beam_score = -0.5;
  output.outputs[0].cumulative_logprob = -9;
  output.outputs[1].text = "y";
  output.outputs[1].cumulative_logprob = -3;
  output.outputs[1].token_ids = {5, 6, 2};
  TranslateJob::Options options;
  options.n_best = 2;
  TranslateJob job(TextLines::open({}).value(), std::move(options));
  EXPECT_EQ(job.result({.index = 7}, output), "7 ||| x ||| -0.500000\n7 ||| y ||| -1.000000\n");
}

}  // namespace
}  // namespace transept
