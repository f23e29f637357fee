// The flags of transcribe: openai-whisper's values and defaults, and mistakes that are told as the flag's.
#include "apps/transcribe_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/engine_flags.h"
#include "apps/verbs.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

StatusOr<TranscribeSettings> settings_of(const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(const Flags flags, Flags::parse(transcribe_flags(), arguments));
  return transcribe_settings(flags);
}

TranscribeSettings settings(const std::vector<std::string>& arguments) {
  StatusOr<TranscribeSettings> got = settings_of(arguments);
  EXPECT_TRUE(got.ok()) << got.status();
  return got.ok() ? *got : TranscribeSettings();
}

std::string refusal(const std::vector<std::string>& arguments) {
  const Status status = settings_of(arguments).status();
  EXPECT_FALSE(status.ok());
  return error_message(status);
}

TEST(TranscribeFlags, DefaultsAreTheReferences) {
  const TranscribeSettings got = settings({});
  const TranscribeOptions& options = got.options;
  EXPECT_EQ(got.files.formats.size(), 5u);
  EXPECT_EQ(got.files.folder, ".");
  EXPECT_TRUE(got.verbose);
  EXPECT_FALSE(got.resume || got.recursive || got.to_stdout);
  EXPECT_EQ(options.task, "transcribe");
  EXPECT_EQ(options.language, "");
  EXPECT_EQ(options.temperature, 0);
  EXPECT_THAT(options.temperature_increment, Optional(0.2));
  EXPECT_EQ(options.best_of, 5);
  EXPECT_FALSE(options.patience.has_value() || options.length_penalty.has_value());
  EXPECT_FALSE(options.suppress_tokens.has_value());
  EXPECT_THAT(options.thresholds.compression_ratio, Optional(2.4));
  EXPECT_THAT(options.thresholds.logprob, Optional(-1.0));
  EXPECT_THAT(options.thresholds.no_speech, Optional(0.6));
  EXPECT_TRUE(options.condition_on_previous_text);
  EXPECT_FALSE(options.word_timestamps || options.without_timestamps || options.carry_initial_prompt);
  EXPECT_FALSE(options.mode.has_value());
}

// What the help says is what happens: every default, given, changes nothing.
TEST(TranscribeFlags, TheHelpTellsTheDefaults) {
  std::vector<std::string> arguments;
  for (const FlagSpec& flag : transcribe_flags()) {
    if (flag.default_text.empty()) continue;
    arguments.push_back("--" + flag.name);
    arguments.push_back(flag.default_text);
  }
  const TranscribeSettings given = settings(arguments), plain = settings({});
  EXPECT_EQ(given.files.formats, plain.files.formats);
  EXPECT_EQ(given.num_workers, plain.num_workers);
  EXPECT_EQ(given.options.prepend_punctuations, plain.options.prepend_punctuations);
  EXPECT_EQ(given.options.append_punctuations, plain.options.append_punctuations);
  EXPECT_EQ(given.options.clip_timestamps, plain.options.clip_timestamps);
  EXPECT_EQ(given.options.max_audio_seconds, plain.options.max_audio_seconds);
  EXPECT_EQ(given.options.batch_size, plain.options.batch_size);
  EXPECT_EQ(given.options.language, plain.options.language);
  EXPECT_EQ(given.options.initial_prompt, plain.options.initial_prompt);
  EXPECT_EQ(given.options.thresholds.logprob, plain.options.thresholds.logprob);
  EXPECT_THAT(given.options.beam_size, Optional(5));
  EXPECT_THAT(given.options.suppress_tokens, Optional(ElementsAre(-1)));
}

TEST(TranscribeFlags, NoneIsNotSet) {
  const TranscribeOptions options = settings({"--language",
                                              "none",
                                              "--temperature-increment-on-fallback",
                                              "none",
                                              "--beam-size",
                                              "None",
                                              "--best-of",
                                              "none",
                                              "--patience",
                                              "none",
                                              "--length-penalty",
                                              "none",
                                              "--no-speech-threshold",
                                              "none",
                                              "--logprob-threshold",
                                              "None",
                                              "--compression-ratio-threshold",
                                              "none",
                                              "--initial-prompt",
                                              "None",
                                              "--hallucination-silence-threshold",
                                              "none",
                                              "--max-line-width",
                                              "none"})
                                        .options;
  EXPECT_EQ(options.language, "");
  EXPECT_EQ(options.initial_prompt, "");
  EXPECT_FALSE(options.temperature_increment.has_value());
  EXPECT_THAT(options.beam_size, Optional(1));
  EXPECT_EQ(options.best_of, 1);
  EXPECT_FALSE(options.thresholds.no_speech.has_value() || options.thresholds.logprob.has_value() ||
               options.thresholds.compression_ratio.has_value());
}

TEST(TranscribeFlags, SwitchesMayHaveTheirValueBehindThem) {
  EXPECT_TRUE(settings({"--word-timestamps"}).options.word_timestamps);
  EXPECT_TRUE(settings({"--word-timestamps", "True"}).options.word_timestamps);
  EXPECT_FALSE(settings({"--condition-on-previous-text", "False"}).options.condition_on_previous_text);
  EXPECT_FALSE(settings({"--verbose=false"}).verbose);
  const auto flags = Flags::parse(transcribe_flags(), {"model", "--word-timestamps", "a.wav", "--resume"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(flags->positional(), ElementsAre("model", "a.wav"));
  EXPECT_TRUE(flags->is_on("word-timestamps") && flags->is_on("resume"));
  EXPECT_THAT(refusal({"--word-timestamps=maybe"}), HasSubstr("--word-timestamps maybe: expected true or false"));
}

TEST(TranscribeFlags, LettersAndUnderscoresAreTheReferencesToo) {
  const TranscribeSettings got = settings({"-f", "srt", "-o", "out", "--beam_size", "3", "--initial_prompt=a_b"});
  EXPECT_THAT(got.files.formats, ElementsAre(TranscriptFormat::kSrt));
  EXPECT_EQ(got.files.folder, "out");
  EXPECT_THAT(got.options.beam_size, Optional(3));
  EXPECT_EQ(got.options.initial_prompt, "a_b");
  EXPECT_THAT(refusal({"-x"}), HasSubstr("unknown flag -x"));
  EXPECT_THAT(refusal({"--beam-sise", "3"}), HasSubstr("did you mean --beam-size?"));
  EXPECT_THAT(refusal({"-f"}), HasSubstr("--output-format wants a value"));
}

TEST(TranscribeFlags, SuppressedTokens) {
  EXPECT_THAT(settings({"--suppress-tokens", "-1"}).options.suppress_tokens, Optional(ElementsAre(-1)));
  EXPECT_THAT(settings({"--suppress-tokens", "-1, 11"}).options.suppress_tokens, Optional(ElementsAre(-1, 11)));
  EXPECT_THAT(settings({"--suppress-tokens", ""}).options.suppress_tokens, Optional(IsEmpty()));
  EXPECT_THAT(refusal({"--suppress-tokens", "1,,2"}), HasSubstr("--suppress-tokens 1,,2: expected ids"));
  EXPECT_THAT(refusal({"--suppress-tokens", "-2"}), HasSubstr("\"-2\" is no id"));
  EXPECT_THAT(refusal({"--suppress-tokens", "99999999999"}), HasSubstr("is no id"));
}

TEST(TranscribeFlags, MistakesAreTheFlags) {
  EXPECT_EQ(refusal({"--temperature", "3"}), "--temperature 3: temperature must be a number from 0 to 2, not 3");
  EXPECT_EQ(refusal({"--task", "summarize"}),
            "--task summarize: task \"summarize\" is unknown; one of transcribe, translate");
  EXPECT_EQ(refusal({"--max-line-width", "40"}), "--max-line-width 40: needs word timestamps");
  EXPECT_THAT(refusal({"--hallucination-silence-threshold", "2"}), HasSubstr("needs --word-timestamps"));
  EXPECT_THAT(refusal({"--clip-timestamps", "1,x"}), HasSubstr("--clip-timestamps 1,x: 'x' is not a number"));
  EXPECT_THAT(refusal({"--mode", "fast"}), HasSubstr("one of auto, sequential, batched"));
  EXPECT_THAT(refusal({"--output-format", "docx"}), HasSubstr("one of txt, vtt, srt, tsv, json, all"));
  EXPECT_THAT(refusal({"--no-speech-threshold", "x"}), HasSubstr("--no-speech-threshold x: expected a number"));
  EXPECT_THAT(refusal({"--temperature", "nan"}), HasSubstr("--temperature nan: expected a number"));
  EXPECT_THAT(refusal({"--num-workers", "0"}), HasSubstr("--num-workers 0: expected a whole number from 1"));
  EXPECT_THAT(refusal({"--max-audio-seconds", "0"}), HasSubstr("--max-audio-seconds 0: "));
  EXPECT_THAT(refusal({"--output-dir", "-"}), HasSubstr("takes one --output-format"));
  EXPECT_THAT(refusal({"-o", "-", "-f", "txt", "--resume"}), HasSubstr("--resume: "));
  EXPECT_THAT(refusal({"-f", "srt", "-f", "docx"}), HasSubstr("--output-format docx: one of txt, vtt"));
}

TEST(TranscribeFlags, SeveralFormatsAreAllWritten) {
  EXPECT_THAT(settings({"-f", "srt", "--output-format", "txt"}).files.formats,
              ElementsAre(TranscriptFormat::kTxt, TranscriptFormat::kSrt));
  EXPECT_EQ(settings({"-f", "srt", "-f", "all"}).files.formats.size(), 5u);
}

TEST(TranscribeFlags, NotesAreForThoseWhoWantThem) {
  const auto has_notes = [](const std::vector<std::string>& arguments) {
    std::vector<FlagSpec> table = transcribe_flags();
    for (const FlagSpec& flag : engine_flags()) table.push_back(flag);
    const StatusOr<Flags> flags = Flags::parse(table, arguments);
    EXPECT_TRUE(flags.ok()) << flags.status();
    const StatusOr<TranscribeSettings> got = transcribe_settings(*flags);
    EXPECT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->has_progress, !flags->is_on("quiet"));
    return got->has_notes;
  };
  EXPECT_TRUE(has_notes({}));
  EXPECT_TRUE(has_notes({"--verbose", "false", "--log-level", "info"}));
  EXPECT_FALSE(has_notes({"--verbose", "false"}));
  EXPECT_FALSE(has_notes({"--log-level", "warning"}));
  EXPECT_FALSE(has_notes({"-q"}));
}

TEST(TranscribeFlags, OptionsWithoutEffectAreWarnedOf) {
  EXPECT_THAT(settings({"--word-timestamps", "--max-line-count", "2"}).warnings,
              ElementsAre("--max-line-count has no effect without --max-line-width"));
}

TEST(TranscribeFlags, NoneOfThemIsTheEnginesToo) {
  for (const Verb& verb : verbs()) {
    std::vector<std::string> names;
    for (const FlagSpec& flag : verb.flags()) names.push_back(flag.name);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << verb.name;
  }
}

TEST(OptionErrors, AreNoFilesFault) {
  EXPECT_TRUE(is_option_error(field_error("word_timestamps", "no heads")));
  EXPECT_TRUE(is_option_error(field_error("language", "unknown")));
  EXPECT_FALSE(is_option_error(field_error("max_audio_seconds", "lasts 9 s")));
  EXPECT_FALSE(is_option_error(field_error("samples", "is empty")));
  EXPECT_FALSE(is_option_error(invalid_argument("is no audio")));
}

}  // namespace
}  // namespace transept
