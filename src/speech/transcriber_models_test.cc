// Transcription by models that lack this or that: alignment heads, languages, room, timestamps, audio, a tokenizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/folder_testing.h"
#include "base/input_file.h"
#include "speech/transcriber.h"
#include "speech/transcriber_testing.h"

namespace transept::testing {
namespace {

using ::testing::HasSubstr;

// A model without this or that: its files, changed.
class OtherModels : public ::testing::Test {
 protected:
  OtherModels() {
    std::filesystem::copy(model_folder("whisper-transcribes"), dir_.path(),
                          std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
  }

  void change(std::string_view file, std::string_view key, Json value) {
    Json json = parse_json(read_file(str_cat(dir_.path(), "/", file)).value());
    json.set(key, std::move(value));
    dir_.write(file, json.dump());
  }

  Status refusal(const TranscribeOptions& options, EngineConfig config = {}) {
    config.model = dir_.path();
    const House house(config);
    return house.transcribe(synthetic_source(1, 2), options).status();
  }
  void expect_refused(const TranscribeOptions& options, std::string_view field, std::string_view part) {
    const Status status = refusal(options);
    EXPECT_EQ(error_param(status), field) << status;
    EXPECT_THAT(error_message(status), HasSubstr(part));
  }

  TestFolder dir_;
};

TEST_F(OtherModels, WithoutAlignmentHeadsThereAreNoWords) {
  change("generation_config.json", "alignment_heads", Json());
  TranscribeOptions options = greedy_options();
  EXPECT_TRUE(refusal(options).ok());
  options.word_timestamps = true;
  expect_refused(options, "word_timestamps", "alignment_heads");
}

TEST_F(OtherModels, WithoutATokenOfNoTimestampsTheyMustNotBeAskedFor) {
  change("generation_config.json", "no_timestamps_token_id", Json());
  std::string tokenizer = read_file(str_cat(dir_.path(), "/tokenizer.json")).value();
  constexpr std::string_view kToken = "<|notimestamps|>";
  tokenizer.replace(tokenizer.find(kToken), kToken.size(), "<|something|>");
  dir_.write("tokenizer.json", tokenizer);
  TranscribeOptions options = greedy_options();
  expect_refused(options, "without_timestamps", "no timestamps");
  options.without_timestamps = true;
  EXPECT_TRUE(refusal(options).ok());
  options.word_timestamps = true;
  expect_refused(options, "word_timestamps", "no timestamps");
}

TEST_F(OtherModels, OfEnglishAlone) {
  change("generation_config.json", "is_multilingual", Json(false));
  TranscribeOptions options = greedy_options();
  EXPECT_TRUE(refusal(options).ok());
  options.language = "";
  EXPECT_TRUE(refusal(options).ok());
  options.language = "de";
  expect_refused(options, "language", "English alone");
  options.language = "";
  options.task = "translate";
  expect_refused(options, "task", "transcribes only");
}

TEST_F(OtherModels, OfOneLanguageNeedNotBeAsked) {
  Json::Object one;
  one.emplace_back("<|de|>", Json(404));
  change("generation_config.json", "lang_to_id", Json(std::move(one)));
  EngineConfig config;
  config.model = dir_.path();
  const House house(config);
  TranscribeOptions options = greedy_options();
  options.language = "";
  const auto result = house.transcribe(synthetic_source(1, 2), options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transcript.language, "de");
  EXPECT_EQ(result->counts.num_requests, result->counts.num_windows);
}

TEST_F(OtherModels, ADecoderTooShortForATranscriptIsNamed) {
  EngineConfig config;
  config.max_model_len = 12;
  const Status status = refusal(greedy_options(), config);
  EXPECT_EQ(error_param(status), "max_model_len") << status;
  // What is left is enough; the windows are not cut by it.
  config.max_model_len = 40;
  EXPECT_TRUE(refusal(greedy_options(), config).ok());
}

TEST_F(OtherModels, BansThatLeaveNothingAreTheCallersError) {
  TranscribeOptions options = greedy_options();
  options.suppress_tokens.emplace();
  for (int32_t id = 0; id < 1913; ++id) options.suppress_tokens->push_back(id);
  expect_refused(options, "suppress_tokens", "no token to choose");
}

// Samples instead of frames, and neither timestamps nor languages: with a tokenizer of letters.
class MoonshineTest : public ::testing::Test {
 protected:
  MoonshineTest() {
    std::filesystem::copy(model_folder("moonshine-float16"), dir_.path(),
                          std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
    constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    std::string vocabulary = R"("<unk>": 0, "<s>": 1, "</s>": 2)";
    for (size_t i = 3; i < 64; ++i) vocabulary += str_cat(", \"", kLetters.substr(i - 3, 1), "\": ", i);
    dir_.write("tokenizer.json", str_cat(R"({"version": "1.0", "added_tokens": [
        {"id": 1, "content": "<s>", "special": true}, {"id": 2, "content": "</s>", "special": true}],
        "model": {"type": "BPE", "unk_token": "<unk>", "merges": [], "vocab": {)",
                                         vocabulary, "}}}"));
  }

  House house(EngineConfig config = {}) const {
    config.model = dir_.path();
    return House(config);
  }

  TestFolder dir_;
};

TEST_F(MoonshineTest, WindowsBetweenPausesAreSegments) {
  const House house = this->house();
  const AudioSource audio = synthetic_source(11, 100, {{20 * 16000, 26 * 16000}, {60 * 16000, 65 * 16000}});
  for (const int32_t batch_size : {1, 8}) {
    TranscribeOptions options;
    options.temperature_increment = std::nullopt;
    options.batch_size = batch_size;
    const int64_t before = house.num_encoder_runs();
    const auto result = house.transcribe(audio, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->mode, TranscribeMode::kBatched);
    EXPECT_EQ(house.num_encoder_runs() - before, result->counts.num_windows);
    EXPECT_EQ(result->counts.num_requests, result->counts.num_windows);
    EXPECT_EQ(static_cast<int64_t>(result->transcript.segments.size()), result->counts.num_windows);
    double last = 0;
    for (const Segment& segment : result->transcript.segments) {
      EXPECT_GE(segment.start, last);
      EXPECT_GT(segment.end, segment.start);
      EXPECT_LE(segment.end - segment.start, 30);
      EXPECT_FALSE(segment.text.empty());
      last = segment.end;
    }
    EXPECT_LE(last, 100);
  }
}

// Silence that is too short for the detector to judge: there is nothing in it at all.
TEST_F(MoonshineTest, SilenceThatIsPassedOverIsNotEncoded) {
  const House house = this->house();
  TranscribeOptions options;
  for (const bool skip : {true, false}) {
    options.skip_silence = skip;
    const auto result = house.transcribe(AudioSource(raw_audio(std::vector<int16_t>(8000))), options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(house.num_encoder_runs(), skip ? 0 : 1);
    EXPECT_EQ(result->transcript.segments.empty(), skip);
  }
}

TEST_F(MoonshineTest, WhatItHasNotIsRefusedByName) {
  const House house = this->house();
  const struct {
    std::string_view field;
    void (*set)(TranscribeOptions&);
  } cases[] = {
      {"language", [](TranscribeOptions& o) { o.language = "en"; }},
      {"task", [](TranscribeOptions& o) { o.task = "translate"; }},
      {"word_timestamps", [](TranscribeOptions& o) { o.word_timestamps = true; }},
      {"initial_prompt", [](TranscribeOptions& o) { o.initial_prompt = "A"; }},
      {"hotwords", [](TranscribeOptions& o) { o.hotwords = "A"; }},
      {"prefix", [](TranscribeOptions& o) { o.prefix = "A"; }},
      {"mode", [](TranscribeOptions& o) { o.mode = TranscribeMode::kSequential; }},
  };
  for (const auto& [field, set] : cases) {
    TranscribeOptions options;
    set(options);
    EXPECT_EQ(error_param(house.transcribe(synthetic_source(1, 2), options).status()), field);
  }
  EngineConfig config;
  config.max_model_len = 100;
  const House narrow = this->house(config);
  const Status status = narrow.transcribe(synthetic_source(1, 2), {}).status();
  EXPECT_EQ(error_param(status), "max_model_len") << status;
}

TEST(TranscriberModels, TextModelsAndFoldersWithoutATokenizer) {
  const SteadyClock clock;
  const TestFolder mute;
  std::filesystem::copy(model_folder("whisper-transcribes"), mute.path(),
                        std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
  std::filesystem::remove(str_cat(mute.path(), "/tokenizer.json"));
  for (const auto& [folder, part] :
       {std::pair(model_folder("bart-float32"), "does not take audio"), std::pair(mute.path(), "tokenizer")}) {
    EngineConfig config;
    config.model = folder;
    config.kv_cache_memory = uint64_t{16} << 20;
    auto model = load_engine(config, clock);
    ASSERT_TRUE(model.ok()) << model.status();
    AsyncEngine engine(std::move(model->engine), {}, clock);
    EXPECT_THAT(error_message(SpeechModel::of(*model, engine).status()), HasSubstr(part));
  }
}

// ---- An engine that cannot go on

}  // namespace
}  // namespace transept::testing
