#include "base/isa.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kNames[] = {"generic", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx"};

TEST(Isa, PresentLevelsRunFromGenericToTheHighest) {
  const std::vector<Isa> levels = present_isas();
  ASSERT_FALSE(levels.empty());
  EXPECT_EQ(levels.front(), Isa::kGeneric);
  EXPECT_EQ(levels.back(), detect_isa());
  EXPECT_TRUE(std::is_sorted(levels.begin(), levels.end()));
}

TEST(Isa, NamesReadBackWherePresentAndAreRefusedElsewhere) {
  for (const std::string_view name : kNames) {
    const StatusOr<Isa> level = parse_isa(name);
    const std::vector<Isa> present = present_isas();
    const bool here = std::any_of(present.begin(), present.end(), [&](Isa isa) { return isa_name(isa) == name; });
    EXPECT_EQ(level.ok(), here) << name;
    if (level.ok()) {
      EXPECT_EQ(isa_name(*level), name);
    }
    if (!level.ok()) {
      EXPECT_THAT(error_message(level.status()), HasSubstr(std::string(name)));
    }
  }
  EXPECT_EQ(*parse_isa("auto"), detect_isa());
}

TEST(Isa, UnknownNamesListTheKnownOnes) {
  const StatusOr<Isa> level = parse_isa("sse9");
  ASSERT_FALSE(level.ok());
  for (const std::string_view name : kNames) EXPECT_THAT(error_message(level.status()), HasSubstr(std::string(name)));
}

#if defined(__x86_64__)
// The compiler's own idea of this processor agrees with ours where both know the feature.
TEST(Isa, AgreesWithTheCompilersDetection) {
  __builtin_cpu_init();
  const Isa isa = detect_isa();
  if (isa >= Isa::kAvx2) {
    EXPECT_TRUE(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  }
  if (!__builtin_cpu_supports("avx2")) {
    EXPECT_EQ(isa, Isa::kGeneric);
  }
  if (isa >= Isa::kAvx512) {
    EXPECT_TRUE(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"));
  }
  if (isa >= Isa::kAvx512Vnni) {
    EXPECT_TRUE(__builtin_cpu_supports("avx512vnni"));
  }
  if (isa == Isa::kAvx512Vnni) {
    EXPECT_FALSE(__builtin_cpu_supports("avx512bf16"));
  }
  if (isa >= Isa::kAvx512Bf16) {
    EXPECT_TRUE(__builtin_cpu_supports("avx512bf16"));
  }
}
#endif

}  // namespace
}  // namespace transept
