#include "base/strings.h"

#include <limits>

#include "gtest/gtest.h"

namespace transept {
namespace {

TEST(Strings, CatJoinsTextNumbersAndBooleans) {
  EXPECT_EQ(str_cat("a", 'b', std::string("c"), 1, -2, 3u, true, 0.5, 1.5f), "abc1-23true0.51.5");
  EXPECT_EQ(str_cat(), "");
  EXPECT_EQ(str_cat(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(str_cat(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
}

TEST(Strings, DoublesInTheirShortestForm) {
  EXPECT_EQ(str_cat(0.1), "0.1");
  EXPECT_EQ(str_cat(1e100), "1e+100");
  EXPECT_EQ(str_cat(5e-324), "5e-324");
  EXPECT_EQ(str_cat(-std::numeric_limits<double>::max()), "-1.7976931348623157e+308");
}

TEST(Strings, FloatsInTheirOwnShortestForm) {
  EXPECT_EQ(str_cat(0.7f), "0.7");
  EXPECT_EQ(str_cat(-1.1f, " ", 16777216.0f), "-1.1 16777216");
  EXPECT_EQ(str_cat(std::numeric_limits<float>::max()), "3.4028235e+38");
}

TEST(Strings, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
  EXPECT_EQ(join({"a", "", "b"}, "+"), "a++b");
  EXPECT_EQ(join({}, "+"), "");
}

TEST(Strings, Trim) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Strings, NearestSuggestsOnlyWhatIsNear) {
  const std::vector<std::string> flags = {"--block-size", "--max-num-seqs", "--seed"};
  EXPECT_EQ(nearest("--blok-size", flags), "--block-size");
  EXPECT_EQ(nearest("--max-num-seq", flags), "--max-num-seqs");
  EXPECT_EQ(nearest("--speed", flags), "--seed");
  EXPECT_EQ(nearest("--temperature", flags), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Strings, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(uint64_t{300} << 20), "300 MiB");
  EXPECT_EQ(format_bytes(uint64_t{5} << 40), "5.0 TiB");
}

}  // namespace
}  // namespace transept
