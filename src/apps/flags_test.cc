// The command line: what is taken, what is refused and by which name, and whose mistake an error says it is.
#include "apps/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "apps/engine_flags.h"
#include "apps/help_text.h"
#include "apps/verbs.h"
#include "base/scoped_variable_testing.h"
#include "core/capabilities.h"
#include "request/field_table.h"

namespace transept {
namespace {

using transept::testing::ScopedVariable;

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<FlagSpec>& table() {
  static const std::vector<FlagSpec> flags = {
      {"count", "N", "1", "a number", "Group"},
      {"size", "SIZE", "", "bytes", "Group"},
      {"loud", "", "", "a switch", "Group"},
      {"old-name", "N", "", "", "Group", "old names are not supported", "1"},
      {"old-switch", "", "", "", "Group", "old switches are not supported"},
  };
  return flags;
}

std::string refusal(const std::vector<std::string>& arguments) {
  const StatusOr<Flags> flags = Flags::parse(table(), arguments);
  EXPECT_FALSE(flags.ok());
  return error_message(flags.status());
}

TEST(Flags, AFlagsMistakeIsTheFlags) {
  const auto flags = Flags::parse(table(), {"--count", "7", "--size", "lots"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(error_message(flags->integer("count", 0, 5, 1).status()), "--count 7: expected a whole number from 0 to 5");
  EXPECT_EQ(error_message(flags->number("count", 0, 5, 1).status()), "--count 7: expected a number from 0 to 5");
  EXPECT_THAT(error_message(flags->bytes("size").status()), HasSubstr("--size: \"lots\" is not a size"));
  EXPECT_EQ(refusal({"--loud=very"}), "--loud very: expected true or false");
  EXPECT_THAT(refusal({"--cont", "3"}), HasSubstr("did you mean --count?"));
}

TEST(Flags, AVariablesMistakeIsTheVariables) {
  const ScopedVariable count("TRANSEPT_COUNT", "7"), size("TRANSEPT_SIZE", "lots");
  const auto flags = Flags::parse(table(), {});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(error_message(flags->integer("count", 0, 5, 1).status()),
            "TRANSEPT_COUNT=7: expected a whole number from 0 to 5");
  EXPECT_EQ(error_message(flags->number("count", 0, 5, 1).status()), "TRANSEPT_COUNT=7: expected a number from 0 to 5");
  EXPECT_THAT(error_message(flags->bytes("size").status()), HasSubstr("TRANSEPT_SIZE: \"lots\" is not a size"));
  EXPECT_EQ(flags->name_of("count"), "TRANSEPT_COUNT");
  // A flag beside it wins, and is then the one to blame.
  const auto beside = Flags::parse(table(), {"--count", "8"});
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(beside->name_of("count"), "--count");
  EXPECT_EQ(error_message(beside->integer("count", 0, 5, 1).status()),
            "--count 8: expected a whole number from 0 to 5");
}

TEST(Flags, AVariablesSwitchIsTheVariables) {
  const ScopedVariable loud("TRANSEPT_LOUD", "very");
  EXPECT_EQ(refusal({}), "TRANSEPT_LOUD=very: expected true or false");
}

TEST(Flags, WhatIsRefusedSaysWhyAndIsNotInTheHelp) {
  EXPECT_EQ(refusal({"--old-name", "2"}), "--old-name: old names are not supported");
  EXPECT_EQ(refusal({"--old-switch"}), "--old-switch: old switches are not supported");
  EXPECT_TRUE(Flags::parse(table(), {"--old-name", "1", "--old-switch=false"}).ok());
  EXPECT_EQ(format_flags(table(), true).find("old"), std::string::npos);
  EXPECT_EQ(refusal({"--old-nam"}), "unknown flag --old-nam");
  const ScopedVariable old("TRANSEPT_OLD_SWITCH", "1");
  EXPECT_EQ(refusal({}), "TRANSEPT_OLD_SWITCH: old switches are not supported");
}

TEST(Flags, AnArgumentThatBeginsLikeAFlagIsOneUnlessItIsAFile) {
  EXPECT_EQ(refusal({"-otxt"}), "unknown flag -otxt; -- ends the flags");
  EXPECT_EQ(refusal({"-x"}), "unknown flag -x; -- ends the flags");
  EXPECT_EQ(refusal({"-hello world"}), "unknown flag -hello world; -- ends the flags");
  for (const char* text : {"-", "-5", "-0.5", "- so he said"}) {
    const auto flags = Flags::parse(table(), {text});
    ASSERT_TRUE(flags.ok()) << flags.status();
    EXPECT_THAT(flags->positional(), ::testing::ElementsAre(text));
  }
  const std::string folder = ::testing::TempDir();
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  std::ofstream("-otxt") << "x";
  const auto flags = Flags::parse(table(), {"-otxt", "--", "--loud"});
  std::filesystem::remove("-otxt");
  std::filesystem::current_path(before);
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(flags->positional(), ::testing::ElementsAre("-otxt", "--loud"));
}

// vLLM's switch stands alone, and has a value here.
TEST(Flags, AChoiceMayHaveAValueThatStandsForTheFlagAlone) {
  std::vector<FlagSpec> flags = table();
  flags.push_back({.name = "keep", .value_name = "auto|off", .value_alone = "auto"});
  const auto value_of = [&](const std::vector<std::string>& arguments) {
    const StatusOr<Flags> parsed = Flags::parse(flags, arguments);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return str_cat(parsed->text_or("keep", "none"), ", ", parsed->positional().size());
  };
  EXPECT_EQ(value_of({"--keep"}), "auto, 0");
  EXPECT_EQ(value_of({"--keep", "off"}), "off, 0");
  EXPECT_EQ(value_of({"--keep=off", "m"}), "off, 1");
  EXPECT_EQ(value_of({"--keep", "m"}), "auto, 1");
  EXPECT_EQ(value_of({"m"}), "none, 1");
}

TEST(Flags, AreCommonOrAdvanced) {
  std::vector<FlagSpec> flags = table();
  keep_common(flags, {"size"});
  EXPECT_THAT(format_flags(flags, false), AllOf(HasSubstr("--size"), ::testing::Not(HasSubstr("--count"))));
  EXPECT_THAT(format_flags(flags, true), AllOf(HasSubstr("--size"), HasSubstr("--count")));
}

TEST(Flags, ChoicesAreWordsWithBarsBetween) {
  EXPECT_THAT(choices({.name = "a", .value_name = "auto|bf16_x"}), ::testing::ElementsAre("auto", "bf16_x"));
  for (const char* none : {"N|LO-HI", "R|inf", "FILE", "", "[BOOL]"}) {
    EXPECT_TRUE(choices({.name = "a", .value_name = none}).empty()) << none;
  }
}

// A word that is completed, and that the help promises, is taken.
TEST(Flags, TheWordsOfAChoiceAreThoseThatTheErrorsName) {
  for (const Verb& verb : verbs()) {
    for (const FlagSpec& flag : verb.flags()) {
      if (choices(flag).empty() || flag.default_text.empty()) continue;
      const std::string word = flag.default_text.substr(0, flag.default_text.find_first_of(",;"));
      EXPECT_THAT(choices(flag), ::testing::Contains(word)) << verb.name << " --" << flag.name;
    }
  }
}

TEST(EngineFlags, RefuseByNameWhatTheTableRefuses) {
  int count = 0;
  for (const FlagSpec& flag : engine_flags()) {
    if (flag.refusal.empty()) continue;
    ++count;
    const auto flags =
        Flags::parse(engine_flags(), {str_cat("--", flag.name, "=", flag.value_name.empty() ? "true" : "2")});
    EXPECT_EQ(flags.status().code(), absl::StatusCode::kUnimplemented) << flag.name;
    EXPECT_THAT(error_message(flags.status()), HasSubstr(str_cat("--", flag.name, ": "))) << flag.name;
  }
  EXPECT_GE(count, 3);
  EXPECT_TRUE(Flags::parse(engine_flags(), {"--tensor-parallel-size", "1", "--num-speculative-tokens", "0"}).ok());
}

TEST(Capabilities, NameFlagsAndFieldsThatExist) {
  std::vector<FlagSpec> flags;
  for (const Verb& verb : verbs()) {
    for (const FlagSpec& flag : verb.flags()) flags.push_back(flag);
  }
  for (const FeatureRow& row : kFeatures) {
    for (const std::string_view name : split(row.flags, ',')) {
      const std::string flag = "--" + std::string(trim(name)).substr(trim(name).empty() ? 0 : 2);
      const bool known =
          std::any_of(flags.begin(), flags.end(), [&](const FlagSpec& f) { return "--" + f.name == flag; });
      EXPECT_TRUE(trim(name).empty() || known) << row.name << ": " << name;
    }
    for (const std::string_view name : split(row.fields, ',')) {
      const bool is_member = trim(name) == "encoder_prompt";  // of a prompt in its explicit form
      EXPECT_TRUE(trim(name).empty() || is_member || find_field(trim(name)) != nullptr) << row.name << ": " << name;
    }
  }
}

}  // namespace
}  // namespace transept
