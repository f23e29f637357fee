// That patterns mean what Oniguruma means by them, and that hostile ones end. Expected matches are those of
// tokenizers.pre_tokenizers.Split(Regex(..)), which runs Oniguruma.
#include "text/unicode/regex.h"

#include <gtest/gtest.h>

#include "text/text_testing.h"

namespace transept {
namespace {

std::vector<std::string> find(std::string_view pattern, std::string_view text) {
  const StatusOr<Regex> regex = Regex::compile(pattern);
  EXPECT_TRUE(regex.ok()) << pattern << ": " << regex.status();
  if (!regex.ok()) return {};
  SearchBudget budget(text.size());
  const auto ranges = regex->find_all(text, budget);
  EXPECT_TRUE(ranges.ok()) << ranges.status();
  std::vector<std::string> found;
  for (const TextRange range : ranges.value_or(std::vector<TextRange>())) found.emplace_back(range.of(text));
  return found;
}

using Found = std::vector<std::string>;

TEST(RegexTest, SpacesAreWhiteSpace) {
  EXPECT_EQ(find(R"(\s+)", "a\u180Eb\u0085c\u200Bd\u3000"), (Found{"\u0085", "\u3000"}));
  EXPECT_EQ(find(R"([\s]+)", "a\u180Eb\u0085c"), (Found{"\u0085"}));
  EXPECT_EQ(find(R"(\S+)", "a\u180Eb\u0085c"), (Found{"a\u180Eb", "c"}));
  EXPECT_EQ(find(R"([\S]+)", "a\u180Eb\u0085c"), (Found{"a\u180Eb", "c"}));
}

TEST(RegexTest, WordsHaveMarksNumbersAndConnectors) {
  EXPECT_EQ(find(R"(\w+)", "aⓐb\u0301_\u203Fx²Ⅷ\u200Dz"), (Found{"aⓐb\u0301_\u203Fx²Ⅷ", "z"}));
  EXPECT_EQ(find(R"([^\w ]+)", "a!? b\u0301-"), (Found{"!?", "-"}));
  EXPECT_EQ(find(R"([\w]+)", "a²\u09F4b"), (Found{"a", "b"}));  // numbers of Latin-1 count only outside of classes
}

TEST(RegexTest, PropertiesAndPosixBrackets) {
  EXPECT_EQ(find(R"(\p{Han}+)", "世、界"), (Found{"世", "界"}));  // the script, not its extensions
  EXPECT_EQ(find(R"([\p{^Han}]+)", "世ab界"), (Found{"ab"}));
  EXPECT_EQ(find(R"(\P{Han}+)", "世ab界"), (Found{"ab"}));
  EXPECT_EQ(find("[[:punct:]]+", "a$¢«b"), (Found{"$¢«"}));
  EXPECT_EQ(find("[[:alpha:]_]+", "aⅧ\u0345_9"), (Found{"aⅧ\u0345_"}));
  EXPECT_EQ(find("[[:space:]]", "\u180E\u00A0"), (Found{"\u00A0"}));
}

TEST(RegexTest, EmptyMatchesCountUnlessTheyTouchTheOneBefore) {
  EXPECT_EQ(find("x*", "abxxc"), (Found{"", "", "xx", ""}));
  EXPECT_EQ(find("x*", "世xx"), (Found{"", "xx"}));
  EXPECT_EQ(find("", ""), (Found{""}));
}

TEST(RegexTest, RubysSyntax) {
  EXPECT_EQ(find("^b", "a\nb"), (Found{"b"}));           // ^ is the begin of a line
  EXPECT_EQ(find("(?m:a.b)", "a\nb"), (Found{"a\nb"}));  // (?m: is dot matches newline
  EXPECT_EQ(find("a.b", "a\nb"), (Found{}));
  EXPECT_EQ(find(R"(\h+)", "xyz09AF"), (Found{"09AF"}));  // \h is a hexadecimal digit
  EXPECT_EQ(find(R"(\u4e16)", "世界"), (Found{"世"}));
  EXPECT_EQ(find("a{,2}b", "aaab"), (Found{"aab"}));
  EXPECT_EQ(find(R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+)", " ab 1234  x"),
            (Found{" ab", " ", "123", "4", " ", " x"}));
}

TEST(RegexTest, RefusesWhatBothLibrariesReadDifferently) {
  EXPECT_EQ(Regex::compile("a{1,2}+").status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Regex::compile("[a").status().code(), absl::StatusCode::kInvalidArgument);
  for (const std::string_view pattern : {"a{1,2}+", "[a[bc]]", "[a&&b]", "(*UTF)a", "(?C1)a", R"(\Qa)", R"(\C)",
                                         R"([\W])", "a\\", R"(\u12)", "[a", "[[:alpha", "[[:^alpha:]]", R"(\pL)"}) {
    EXPECT_FALSE(Regex::compile(pattern).ok()) << pattern;
  }
  for (const std::string_view pattern : {"(a", "a)", "*", "(?<=a+)b", R"(\p{Nonsense})"}) {
    EXPECT_FALSE(Regex::compile(pattern).ok()) << pattern;
  }
  EXPECT_FALSE(Regex::compile(std::string(100'000, 'a')).ok());
}

// Each of these takes exponential or quadratic time where nothing stops it.
TEST(RegexTest, HostilePatternsEndInAnError) {
  const std::string text(100'000, 'a');
  for (const std::string_view pattern :
       {"(a+)+$b", "(a|a)*b", "(?=[a]*x)y|a*+x|[a-z]*[a-z]*[a-z]*x", "(a?){100}a{100}b"}) {
    const StatusOr<Regex> regex = Regex::compile(pattern);
    ASSERT_TRUE(regex.ok()) << pattern << regex.status();
    SearchBudget budget(0, /*seconds=*/0.02);
    const double start = cpu_seconds();
    const auto found = regex->find_all(text, budget);
    EXPECT_LT(cpu_seconds() - start, 10 * kSlowness) << pattern;
    EXPECT_EQ(found.status().code(), absl::StatusCode::kResourceExhausted) << pattern;
  }
}

// However many short texts it takes: a budget is for all of them.
TEST(RegexTest, ABudgetLastsForManySearches) {
  const StatusOr<Regex> regex = Regex::compile("(a|aa)+$");
  ASSERT_TRUE(regex.ok()) << regex.status();
  SearchBudget budget(0, /*seconds=*/0.02);
  Status status;
  const double start = cpu_seconds();
  while (status.ok() && cpu_seconds() - start < 10) status = regex->find_all("aaaaaaaaaaaaaaaaaaaab", budget).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(RegexTest, HonestPatternsRunInLinearTime) {
  std::string text;
  while (text.size() < 200'000) text += "some words, 12345 numbers;  and spaces\n";
  const double start = cpu_seconds();
  EXPECT_GT(
      find(R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", text).size(),
      40'000u);
  EXPECT_LT(cpu_seconds() - start, 2 * kSlowness);
}

}  // namespace
}  // namespace transept
