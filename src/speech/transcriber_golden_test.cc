// The whole of transcribe() against openai-whisper's, on tiny random weights and synthetic audio
// (tests/make_transcripts.py): texts, tokens, seeks, times, words; and every window is encoded once.
#include <gtest/gtest.h>

#include <thread>

#include "base/sanitized_testing.h"
#include "speech/characters.h"
#include "speech/compression_ratio.h"
#include "speech/transcriber_testing.h"

namespace transept::testing {
namespace {

std::optional<double> optional_number(const Json& options, std::string_view name, std::optional<double> otherwise) {
  const Json* value = options.find(name);
  if (value == nullptr) return otherwise;
  return value->is_null() ? std::nullopt : std::optional(value->as_double());
}

// The reference's keyword arguments.
TranscribeOptions options_of(const Json& json) {
  const auto text_or = [&](std::string_view name, std::string_view otherwise) {
    const Json* value = json.find(name);
    return std::string(value == nullptr || value->is_null() ? otherwise : value->as_string());
  };
  const auto is_set = [&](std::string_view name, bool otherwise) {
    const Json* value = json.find(name);
    return value == nullptr ? otherwise : value->as_bool();
  };
  TranscribeOptions options;
  options.language = text_or("language", "");
  options.task = text_or("task", "transcribe");
  options.temperature = number(json, "temperature");
  options.temperature_increment = std::nullopt;
  options.beam_size = static_cast<int32_t>(optional_number(json, "beam_size", 1).value());
  options.patience = optional_number(json, "patience", std::nullopt);
  options.length_penalty = optional_number(json, "length_penalty", std::nullopt);
  options.thresholds.compression_ratio = optional_number(json, "compression_ratio_threshold", 2.4);
  options.thresholds.logprob = optional_number(json, "logprob_threshold", -1.0);
  options.thresholds.no_speech = optional_number(json, "no_speech_threshold", 0.6);
  options.condition_on_previous_text = is_set("condition_on_previous_text", true);
  options.initial_prompt = text_or("initial_prompt", "");
  options.carry_initial_prompt = is_set("carry_initial_prompt", false);
  options.prefix = text_or("prefix", "");
  options.without_timestamps = is_set("without_timestamps", false);
  options.word_timestamps = is_set("word_timestamps", false);
  options.hallucination_silence_threshold = optional_number(json, "hallucination_silence_threshold", std::nullopt);
  options.clip_timestamps = text_or("clip_timestamps", "0");
  if (json.find("suppress_tokens") != nullptr) {
    options.suppress_tokens.emplace();
    for (const std::string_view id : split(text(json, "suppress_tokens"), ',')) {
      if (!id.empty()) options.suppress_tokens->push_back(std::stoi(std::string(id)));
    }
  }
  return options;
}

AudioSource audio_of(const Json& json) {
  Silence silence;
  for (const Json& range : list(json, "silence")) {
    silence.emplace_back(range.as_array()[0].as_int(), range.as_array()[1].as_int());
  }
  const auto seed = static_cast<uint32_t>(integer(json, "seed"));
  return AudioSource(raw_audio(synthetic_audio(seed, static_cast<size_t>(integer(json, "num_samples")), silence)));
}

std::vector<Json> cases() { return read_json_lines(model_folder("whisper-transcribes") + "/transcripts.jsonl"); }

// As openai-whisper's result would be if it told the prefix, as faster-whisper does: the tokens, the text, and scores
// of all of them. The first segment is the window's only one.
void add_prefix(std::span<const int32_t> tokens, const std::string& prefix, Transcript& transcript) {
  Segment& first = transcript.segments.front();
  const auto before = static_cast<double>(first.tokens.size() + 1), after = before + static_cast<double>(tokens.size());
  first.tokens.insert(first.tokens.begin(), tokens.begin(), tokens.end());
  first.text = str_cat(" ", prefix, first.text);
  first.avg_logprob *= before / after;
  first.compression_ratio = compression_ratio(strip_space(first.text));
  transcript.text = str_cat(" ", prefix, transcript.text);
}

// Where words were asked for they move the segments' ends: the path through random weights' attention may take the
// other side of a near tie, one position (0.02 s) away.
void expect_reference(const Transcript& actual, const Transcript& expected) {
  const double tolerance = expected.has_words ? 0.0201 : 1e-3;
  EXPECT_EQ(actual.text, expected.text);
  EXPECT_EQ(actual.language, expected.language);
  ASSERT_EQ(actual.segments.size(), expected.segments.size());
  for (size_t i = 0; i < expected.segments.size(); ++i) {
    SCOPED_TRACE(str_cat("segment ", i));
    const Segment &got = actual.segments[i], &want = expected.segments[i];
    EXPECT_EQ(got.id, want.id);
    EXPECT_EQ(got.seek, want.seek);
    EXPECT_NEAR(got.start, want.start, tolerance);
    EXPECT_NEAR(got.end, want.end, tolerance);
    EXPECT_EQ(got.text, want.text);
    EXPECT_EQ(got.tokens, want.tokens);
    EXPECT_EQ(got.temperature, want.temperature);
    EXPECT_NEAR(got.avg_logprob, want.avg_logprob, 1e-3);
    EXPECT_NEAR(got.compression_ratio, want.compression_ratio, 1e-5);
    EXPECT_NEAR(got.no_speech_prob, want.no_speech_prob, 1e-4);
    ASSERT_EQ(got.words.size(), want.words.size());
    for (size_t w = 0; w < want.words.size(); ++w) {
      EXPECT_EQ(got.words[w].word, want.words[w].word) << w;
      EXPECT_NEAR(got.words[w].start, want.words[w].start, 1e-3) << w;
      EXPECT_NEAR(got.words[w].end, want.words[w].end, 1e-3) << w;
      EXPECT_NEAR(got.words[w].probability, want.words[w].probability, 2e-3) << w;
    }
  }
}

Transcript expected_of(const Json& row, const LoadedModel& model) {
  Transcript expected = transcript_of(member(row, "result"));
  const std::string prefix = options_of(member(row, "options")).prefix;
  if (!prefix.empty()) {
    const EncodeOptions options{.add_special_tokens = false, .side = TokenizerSide::kDecoder};
    add_prefix(model.tokenizer->encode(str_cat(" ", prefix), options).value(), prefix, expected);
  }
  return expected;
}

TEST(TranscriberGolden, OpenaiWhispersAnswers) {
  House house;
  size_t count = 0;
  for (const Json& row : cases()) {
    if (kSanitized && count++ % 3 != 0) continue;  // all of them run in the next test
    SCOPED_TRACE(text(row, "id"));
    const int64_t runs_before = house.num_encoder_runs();
    const auto result = house.transcribe(audio_of(member(row, "audio")), options_of(member(row, "options")));
    ASSERT_TRUE(result.ok()) << result.status();
    expect_reference(result->transcript, expected_of(row, house.model()));
    EXPECT_EQ(result->mode, TranscribeMode::kSequential);
    EXPECT_EQ(house.num_encoder_runs() - runs_before, result->counts.num_windows);
  }
}

// All at once, in one batch of one engine whose pool is too small for them.
TEST(TranscriberGolden, SeveralAtOnceGiveWhatTheyGiveAlone) {
  EngineConfig config;
  config.kv_cache_memory = uint64_t{6} << 20;
  House house(config);
  const std::vector<Json> rows = cases();
  std::vector<StatusOr<TranscribeResult>> results(rows.size(), absl::UnknownError("not run"));
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  threads.reserve(6);
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (size_t at = next++; at < rows.size(); at = next++) {
        results[at] = house.transcribe(audio_of(member(rows[at], "audio")), options_of(member(rows[at], "options")));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(text(rows[i], "id"));
    ASSERT_TRUE(results[i].ok()) << results[i].status();
    expect_reference(results[i]->transcript, expected_of(rows[i], house.model()));
  }
}

}  // namespace
}  // namespace transept::testing
