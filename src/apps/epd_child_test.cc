// What a launcher was told reaches its instances as it was meant, and reads there as it was given.
#include "apps/epd_child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/epd_flags.h"
#include "apps/foreign_flags.h"
#include "apps/verbs.h"
#include "base/scoped_variable_testing.h"

namespace transept {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScopedVariable;
using ::testing::StartsWith;

const EpdModel kModel = {"-models/tiny", "org/tiny"};
const EpdInstance kEncode = {"e0", InstanceRole::kEncode, 2, "0-1"};
const EpdInstance kDecode = {"p0", InstanceRole::kDecode, 3, "none"};

// Those of serve, and those that instances have.
std::vector<FlagSpec> table() {
  const auto serve = std::ranges::find(verbs(), "serve", &Verb::name);
  std::vector<FlagSpec> flags = serve->flags();
  std::vector<FlagSpec> more = epd_flags();
  for (const char* name : {"role", "broker", "ec-secret-file", "ec-bulk-address", "instance-name"}) {
    more.push_back({.name = name, .value_name = "VALUE"});
  }
  for (FlagSpec& flag : more) {
    const bool is_there = std::ranges::any_of(flags, [&](const FlagSpec& other) { return other.name == flag.name; });
    if (!is_there) flags.push_back(std::move(flag));
  }
  return flags;
}

Flags parsed(const std::vector<std::string>& arguments) {
  const std::vector<FlagSpec> flags = table();
  StatusOr<Flags> parsed = Flags::parse(flags, arguments, foreign_flags("serve", true, flags));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  parsed->place_model(0);
  return std::move(parsed).value();
}

std::vector<std::string> arguments_of(const std::vector<std::string>& given, const EpdInstance& instance,
                                      const EpdLinks& links = {"/run/f", "", ""}) {
  return epd_arguments(parsed(given), table(), kModel, instance, links);
}

TEST(EpdArguments, OfAnEncodeInstance) {
  EXPECT_THAT(
      arguments_of({"org/tiny", "--epd", "1E1D", "--host=0.0.0.0", "--port", "80"}, kEncode),
      ElementsAre("transept", "serve", "--served-model-name=org/tiny", "--host=127.0.0.1", "--port=0", "--role=encode",
                  "--instance-name=e0", "--broker=local:/run/f/broker", "--ec-secret-file=/run/f/secret",
                  "--ec-bulk-address=ipc:///run/f/e0", "--threads=2", "--cpu-affinity=0-1", "--", "-models/tiny"));
}

TEST(EpdArguments, OfADecodeInstance) {
  EXPECT_THAT(
      arguments_of({"--epd=1E1D", "--epd_threads=2,3", "--host=0.0.0.0", "--port", "80", "org/tiny"}, kDecode),
      ElementsAre("transept", "serve", "--host=0.0.0.0", "--port=80", "--served-model-name=org/tiny", "--role=decode",
                  "--instance-name=p0", "--broker=local:/run/f/broker", "--ec-secret-file=/run/f/secret",
                  "--ec-bulk-address=ipc:///run/f/p0", "--threads=3", "--cpu-affinity=none", "--", "-models/tiny"));
}

TEST(EpdArguments, ARedisServerIsNamedByTheEnvironment) {
  const EpdLinks links{"/run/f", "redis://u:p@h/1", "epd-7"};
  const auto arguments = arguments_of({"m", "--epd=1E1D", "--epd-broker=redis://u:p@h/1"}, kDecode, links);
  EXPECT_THAT(arguments, Contains("--ec-namespace=epd-7"));
  EXPECT_THAT(arguments, Not(Contains(HasSubstr("broker"))));
  const char* const environment[] = {"TRANSEPT_BROKER=redis://other", "TRANSEPT_EPD_BROKER=redis://u:p@h/1", nullptr};
  EXPECT_THAT(epd_environment(environment, links), ElementsAre("TRANSEPT_BROKER=redis://u:p@h/1"));
}

// Both sides of a transfer have to agree on some of them.
TEST(EpdArguments, OfTransfersAreForAllInstances) {
  for (const EpdInstance& instance : {kEncode, kDecode}) {
    const auto arguments =
        arguments_of({"--ec-transfer-dtype=bfloat16", "--ec-fallback", "local", "--ec_lease=7", "m"}, instance);
    for (const char* flag : {"--ec-transfer-dtype=bfloat16", "--ec-fallback=local", "--ec-lease=7"}) {
      EXPECT_THAT(arguments, Contains(flag));
    }
  }
}

TEST(EpdArguments, TheModelIsFoundOnce) {
  for (const std::string& argument : arguments_of(
           {"org/tiny", "--revision", "main", "--download_dir=/m", "--cache-dir", "/m", "--cpu-affinity=2"}, kDecode)) {
    EXPECT_THAT(argument, Not(StartsWith("--revision")));
    EXPECT_THAT(argument, Not(StartsWith("--download-dir")));
    EXPECT_THAT(argument, Not(StartsWith("--cache-dir")));
    EXPECT_NE(argument, "--cpu-affinity=2");
  }
}

TEST(EpdArguments, ReadAsTheyWereGiven) {
  const ScopedVariable variable("TRANSEPT_MAX_NUM_SEQS", "7"), origin("TRANSEPT_CORS_ORIGIN", "http://a");
  const auto arguments =
      arguments_of({"m", "--api-key", "-x", "--api_key=a=b c", "--served-model-name", "n", "--served-model-name=", "-q",
                    "--log-prompts=false", "--block-size=8", "--block-size", "16", "--tensor-parallel-size", "1"},
                   kDecode);
  EXPECT_THAT(arguments, Not(Contains(StartsWith("--max-num-seqs")))) << "the child has the variable, too";
  const Flags child = parsed({arguments.begin() + 2, arguments.end()});
  EXPECT_THAT(child.positional(), ElementsAre(kModel.folder));
  EXPECT_THAT(child.texts("api-key"), ElementsAre("-x", "a=b c"));
  EXPECT_THAT(child.texts("served-model-name"), ElementsAre("n", ""));
  EXPECT_THAT(child.texts("cors-origin"), ElementsAre("http://a"));
  EXPECT_TRUE(child.is_on("quiet"));
  EXPECT_FALSE(child.is_on("log-prompts"));
  EXPECT_EQ(child.text("block-size"), "16");
  EXPECT_EQ(child.text("max-num-seqs"), "7");
  EXPECT_EQ(child.text("threads"), "3");
}

TEST(EpdArguments, FlagsOfOtherToolsAreWhatTheyStandFor) {
  const auto arguments = arguments_of({"--model", "org/tiny", "--disable-log-requests"}, kDecode);
  EXPECT_THAT(arguments, Not(Contains(StartsWith("--model"))));
  EXPECT_THAT(arguments, Not(Contains(StartsWith("--disable"))));
}

TEST(EpdEnvironment, LeavesOutWhatArgumentsSay) {
  const char* const environment[] = {"PATH=/bin",
                                     "TRANSEPT_EPD=1E1D",
                                     "TRANSEPT_EPD_THREADS=1,1",
                                     "TRANSEPT_ROLE=x",
                                     "TRANSEPT_CPU_AFFINITY=1",
                                     "TRANSEPT_PORT=80",
                                     "TRANSEPT_EPDX=1",
                                     "TRANSEPT_REVISION=main",
                                     "EMPTY=",
                                     "TRANSEPT_BROKER=",
                                     nullptr};
  EXPECT_THAT(epd_environment(environment, {"/run/f", "", ""}),
              ElementsAre("PATH=/bin", "TRANSEPT_PORT=80", "TRANSEPT_EPDX=1", "EMPTY="));
}

}  // namespace
}  // namespace transept
