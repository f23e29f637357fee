// Every row of the table of foreign flags, through the parser: it does what it says, or is refused with what it says.
#include "apps/foreign_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "apps/help_text.h"
#include "apps/verbs.h"
#include "startup/whisper_alias.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// A value that the row is about.
std::string sample(const ForeignFlag& row) {
  if (row.ours.find("parallel-size") != row.ours.npos) return "1";  // others are refused
  if (!row.value.empty()) return replaced(replaced(std::string(row.value), "*", "x"), "[0-9]", "4");
  if (row.value_name == "[BOOL]") return "true";
  return row.value_name == "N" ? "3" : row.value_name == "X" || row.value_name == "SHARE" ? "0.5" : "x";
}

StatusOr<Flags> parse(const Verb& verb, const std::vector<std::string>& arguments) {
  const std::vector<FlagSpec> table = verb.flags();
  const std::optional<size_t> place = model_place(verb);
  StatusOr<Flags> flags = Flags::parse(table, arguments, foreign_flags(verb.name, place.has_value(), table));
  if (flags.ok() && place.has_value()) flags->place_model(*place);
  return flags;
}

std::vector<std::string> given(const ForeignFlag& row, std::string_view spelling) {
  std::vector<std::string> arguments = {std::string(spelling)};
  if (!row.value_name.empty()) arguments.push_back(sample(row));
  return arguments;
}

// What stands in its place, written by hand.
std::vector<std::string> ours(const ForeignFlag& row) {
  std::vector<std::string> arguments;
  for (const std::string_view word : split(row.ours, ' ')) {
    if (!word.empty()) arguments.push_back(replaced(replaced(std::string(word), "MODEL={}", "{}"), "{}", sample(row)));
  }
  return arguments;
}

void check_row(const Verb& verb, const ForeignFlag& row, std::string_view spelling) {
  SCOPED_TRACE(str_cat(verb.name, " ", spelling, " ", row.value));
  const StatusOr<Flags> flags = parse(verb, given(row, spelling));
  if (row.kind == ForeignFlag::Kind::kRefused) {
    EXPECT_EQ(flags.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(error_message(flags.status()), StartsWith(std::string(spelling)));
    EXPECT_THAT(error_message(flags.status()), HasSubstr(std::string(row.why)));
    return;
  }
  ASSERT_TRUE(flags.ok()) << flags.status();
  const StatusOr<Flags> wanted = parse(verb, ours(row));
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  EXPECT_EQ(flags->positional(), wanted->positional());
  for (const FlagSpec& flag : verb.flags()) EXPECT_EQ(flags->text(flag.name), wanted->text(flag.name)) << flag.name;
  EXPECT_EQ(flags->notes().size(), row.kind == ForeignFlag::Kind::kNothing ? 1u : 0u);
  for (const std::string& note : flags->notes()) EXPECT_THAT(note, HasSubstr(std::string(row.why)));
}

TEST(ForeignFlags, DefaultsOfWhisperCppAreAccepted) {
  const auto verb = std::ranges::find(verbs(), "transcribe", &Verb::name);
  ASSERT_NE(verb, verbs().end());
  for (const char* given :
       {"-ot 0", "--offset-t 0", "-d 0", "--duration 0", "-on 0", "--offset-n 0", "-p 1", "-ac 0", "-ml 0", "-mc -1"}) {
    std::vector<std::string> arguments;
    for (const std::string_view word : split(given, ' ')) arguments.emplace_back(word);
    const StatusOr<Flags> flags = parse(*verb, arguments);
    EXPECT_TRUE(flags.ok()) << flags.status();
    arguments.back() = "2";
    EXPECT_EQ(parse(*verb, arguments).ok(), arguments[0] == "-ml") << given;
  }
}

TEST(ForeignFlags, EveryRowDoesWhatItSays) {
  size_t num_checked = 0;
  for (const Verb& verb : verbs()) {
    for (const ForeignFlag& row : foreign_flags(verb.name, model_place(verb).has_value(), verb.flags())) {
      for (const std::string_view spelling : split(row.spellings, ' ')) {
        check_row(verb, row, spelling);
        ++num_checked;
      }
    }
  }
  EXPECT_GT(num_checked, all_foreign_flags().size());
}

TEST(ForeignFlags, EveryRowHoldsForAVerb) {
  for (const ForeignFlag& row : all_foreign_flags()) {
    const bool holds = std::any_of(verbs().begin(), verbs().end(), [&](const Verb& verb) {
      const std::vector<ForeignFlag> rows = foreign_flags(verb.name, model_place(verb).has_value(), verb.flags());
      return std::any_of(rows.begin(), rows.end(), [&](const ForeignFlag& other) {
        return other.spellings.data() == row.spellings.data() && other.value == row.value;
      });
    });
    EXPECT_TRUE(holds) << row.spellings << " " << row.value;
  }
}

// A row for every value would hide a flag of ours.
TEST(ForeignFlags, HideNoFlagOfOurs) {
  for (const Verb& verb : verbs()) {
    const std::vector<FlagSpec> table = verb.flags();
    for (const ForeignFlag& row : foreign_flags(verb.name, model_place(verb).has_value(), table)) {
      for (const std::string_view spelling : split(row.spellings, ' ')) {
        const bool is_ours = std::any_of(table.begin(), table.end(), [&](const FlagSpec& flag) {
          return spelling == "--" + flag.name || (flag.letter != 0 && spelling == str_cat("-", flag.letter));
        });
        EXPECT_FALSE(is_ours && row.value.empty()) << verb.name << " " << spelling;
      }
    }
  }
}

TEST(ForeignFlags, RemediesNameFlagsThatExist) {
  std::set<std::string> known;
  for (const Verb& verb : verbs()) {
    for (const FlagSpec& flag : verb.flags()) {
      if (flag.refusal.empty()) known.insert("--" + flag.name);
    }
  }
  for (const ForeignFlag& row : all_foreign_flags()) {
    for (std::string_view word : split(row.why, ' ')) {
      if (!word.starts_with("--")) continue;
      while (word.ends_with(',') || word.ends_with(';') || word.ends_with(':')) word.remove_suffix(1);
      EXPECT_TRUE(known.contains(std::string(word))) << row.spellings << ": " << word;
    }
  }
}

const Verb& verb_named(std::string_view name) {
  return *std::find_if(verbs().begin(), verbs().end(), [&](const Verb& verb) { return verb.name == name; });
}

TEST(ForeignFlags, UnderscoresEqualsSignsAndCaseDoNotMatter) {
  const Verb& verb = verb_named("transcribe");
  const auto texts = [&](const std::vector<std::string>& arguments) {
    const StatusOr<Flags> flags = parse(verb, arguments);
    EXPECT_TRUE(flags.ok()) << flags.status();
    return flags.ok() ? str_cat(flags->text_or("dtype", "-"), " ", flags->text_or("quantization", "-"), " ",
                                flags->text_or("mode", "-"))
                      : "";
  };
  EXPECT_EQ(texts({"--compute_type", "int8_float16"}), "float16 int8 -");
  EXPECT_EQ(texts({"--compute-type=INT8_FLOAT16"}), "float16 int8 -");
  EXPECT_EQ(texts({"--batched", "True"}), "- - batched");
  EXPECT_EQ(texts({"--batched=0"}), "- - sequential");
  const auto filters = [&](const std::vector<std::string>& arguments) {
    const StatusOr<Flags> flags = parse(verb, arguments);
    return flags.ok() && flags->boolean("vad-filter", false).value() && !flags->has("mode");
  };
  EXPECT_TRUE(filters({"--vad_filter", "True"}));
  EXPECT_TRUE(filters({"--vad"}));
  EXPECT_FALSE(filters({"--vad_filter", "False"}));
  EXPECT_EQ(texts({"--dtype", "half"}), "half - -") << "the engine's own name for it, too";
  EXPECT_EQ(texts({"--dtype", "bfloat16"}), "bfloat16 - -");
  EXPECT_EQ(texts({"--compute_type", "int8", "--dtype", "float32", "--fp16", "True"}), "float16 int8 -");
  EXPECT_EQ(error_message(parse(verb, {"--compute_type", "int4"}).status()),
            "--compute-type int4: one of default, auto, float32, float16, bfloat16, int8, int8_float32, int8_float16, "
            "int8_bfloat16");
}

TEST(ForeignFlags, AModelByFlagComesBeforeTheOtherArguments) {
  const StatusOr<Flags> speech = parse(verb_named("transcribe"), {"talk.mp3", "--model", "tiny", "-f", "two.wav"});
  ASSERT_TRUE(speech.ok()) << speech.status();
  EXPECT_THAT(speech->positional(), ::testing::ElementsAre("tiny", "talk.mp3", "two.wav"));
  const StatusOr<Flags> bench = parse(verb_named("bench"), {"latency", "-m", "g2p"});
  ASSERT_TRUE(bench.ok()) << bench.status();
  EXPECT_THAT(bench->positional(), ::testing::ElementsAre("latency", "g2p"));
}

TEST(ForeignFlags, SeveralFormatsOfWhisperCppAreAllWritten) {
  const StatusOr<Flags> flags = parse(verb_named("transcribe"), {"-otxt", "-osrt", "-oj"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(flags->texts("output-format"), ::testing::ElementsAre("txt", "srt", "json"));
}

TEST(WhisperAlias, KnowsTheNamesOfOpenaiWhisper) {
  EXPECT_EQ(whisper_alias("tiny"), "openai/whisper-tiny");
  EXPECT_EQ(whisper_alias("large"), "openai/whisper-large-v3");
  EXPECT_EQ(whisper_alias("turbo"), "openai/whisper-large-v3-turbo");
  EXPECT_EQ(whisper_alias("large-v1"), "openai/whisper-large");
  for (const char* none : {"", "g2p", "whisper-tiny", "openai/whisper-tiny", "Tiny"}) {
    EXPECT_EQ(whisper_alias(none), "") << none;
  }
}

TEST(WhisperAlias, RevisionsStay) {
  EXPECT_EQ(full_name("tiny"), "openai/whisper-tiny");
  EXPECT_EQ(full_name("tiny@refs/pr/1"), "openai/whisper-tiny@refs/pr/1");
  for (const char* as_it_is : {"", "g2p", "acme/x", "acme/x@v1", "@"}) EXPECT_EQ(full_name(as_it_is), as_it_is);
}

TEST(WhisperAlias, NamesThatAreNearlyRight) {
  for (const char* tiny : {"whisper-tiny", "Tiny", "whisper-tiny/", "openai/whisper-tiny/", "tiny.pt", "ggml-tiny.bin",
                           "models/ggml-tiny.bin", "/x/y/ggml-tiny-q5_1.bin"}) {
    EXPECT_EQ(meant_name(tiny), "openai/whisper-tiny") << tiny;
  }
  EXPECT_EQ(meant_name("models/ggml-base.en.bin"), "openai/whisper-base.en");
  EXPECT_EQ(meant_name("ggml-large-v3-turbo-q8_0.bin"), "openai/whisper-large-v3-turbo");
  EXPECT_EQ(meant_name("bart-large-cnn/"), "facebook/bart-large-cnn");
  EXPECT_EQ(meant_name("opus-mt-en-de"), "Helsinki-NLP/opus-mt-en-de");
  for (const char* none : {"", "/", "nowhere", "model.bin", "models/model.bin", "t5-small.bin", "ggml-.bin", "a/b/c"}) {
    EXPECT_EQ(meant_name(none), "") << none;
  }
}

}  // namespace
}  // namespace transept
