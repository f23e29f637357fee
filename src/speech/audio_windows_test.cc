// Windows of audio of any length: those cut from a second pass are those kept from the first, in any order, for both
// front ends; what is kept does not grow with the audio.
#include "speech/audio_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "multimodal/registry.h"
#include "speech/transcriber_testing.h"

namespace transept::testing {
namespace {

using ::testing::HasSubstr;

class FrontEnd final {
 public:
  explicit FrontEnd(std::string_view config, std::string_view preprocessor = "{}") {
    const TestFolder dir;
    dir.write("config.json", config);
    dir.write("preprocessor_config.json", preprocessor);
    registry_ = MultiModalRegistry::create(ModelConfig::load(dir.path()).value()).value();
  }
  const AudioProcessor& processor() const { return *registry_->audio(); }

 private:
  std::unique_ptr<MultiModalRegistry> registry_;
};

constexpr std::string_view kWhisper = R"({"model_type": "whisper", "vocab_size": 10})";
constexpr std::string_view kMoonshine = R"({"model_type": "moonshine", "vocab_size": 10})";

// A sound file of one byte a sample, which is what it costs while it is read.
AudioSource u8_wav(size_t num_samples, uint32_t rate) {
  std::string data(num_samples, '\0');
  for (size_t i = 0; i < num_samples; ++i) data[i] = static_cast<char>(128 + static_cast<int>(i * i / 1000 % 100));
  const auto little = [](uint64_t value, int num_bytes) {
    std::string bytes;
    for (int i = 0; i < num_bytes; ++i) bytes += static_cast<char>(value >> (8 * i));
    return bytes;
  };
  return AudioSource(AudioBytes::from_string(
      str_cat("RIFF", little(36 + data.size(), 4), "WAVEfmt ", little(16, 4), little(1, 2), little(1, 2),
              little(rate, 4), little(rate, 4), little(1, 2), little(8, 2), "data", little(data.size(), 4), data)));
}

std::vector<float> rows_of(AudioWindows& windows, int64_t begin, int64_t end) {
  auto rows = windows.rows(begin, end);
  EXPECT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows.ok() ? rows->size() : 0, static_cast<size_t>((end - begin) * windows.row_width()));
  return rows.ok() ? std::move(rows).value() : std::vector<float>();
}

TEST(AudioWindows, ASecondPassGivesWhatTheFirstGave) {
  for (const std::string_view config : {kWhisper, kMoonshine}) {
    const FrontEnd front(config);
    for (const double seconds : {95.0, 29.997, 3.21, 0.05}) {
      SCOPED_TRACE(str_cat(config, " ", seconds));
      const AudioSource audio = synthetic_source(3, seconds);
      const auto kept = AudioWindows::open(audio, front.processor(), {.find_voice = true}).value();
      const auto cut = AudioWindows::open(audio, front.processor(), {.find_voice = true, .max_kept_bytes = 0}).value();
      EXPECT_EQ(kept->num_frames(), static_cast<int64_t>(seconds * 100));
      EXPECT_EQ(cut->num_frames(), kept->num_frames());
      EXPECT_EQ(cut->seconds(), kept->seconds());
      ASSERT_EQ(cut->voice().size(), static_cast<size_t>(kept->num_frames()));
      for (size_t i = 0; i < cut->voice().size(); ++i) {
        ASSERT_EQ(cut->voice()[i].probability, kept->voice()[i].probability) << i;
        ASSERT_EQ(cut->voice()[i].level, kept->voice()[i].level) << i;
      }
      // On, back, over a part again, to the end, nothing at all.
      const int64_t n = kept->num_frames();
      const std::pair<int64_t, int64_t> ranges[] = {
          {0, n / 3}, {n / 4, n / 2}, {n * 3 / 4, n}, {n / 5, n / 4}, {0, std::min<int64_t>(n, 3000)},
          {n, n},     {n - 1, n},     {0, 1}};
      for (const auto& [begin, end] : ranges) {
        SCOPED_TRACE(str_cat(begin, " to ", end));
        const std::vector<float> expected = rows_of(*kept, begin, end);
        EXPECT_EQ(rows_of(*cut, begin, end), expected);
        if (end - begin <= 3000) {
          EXPECT_EQ(*cut->features(expected), *kept->features(expected));
        }
      }
    }
  }
}

// Whisper's silence after the audio: 30 s of it.
TEST(AudioWindows, LogMelGoesOnBehindTheAudio) {
  const FrontEnd front(kWhisper);
  for (const size_t max_kept_bytes : {size_t{0}, size_t{64} << 20}) {
    const auto windows =
        AudioWindows::open(synthetic_source(3, 10), front.processor(), {.max_kept_bytes = max_kept_bytes}).value();
    EXPECT_EQ(windows->num_frames(), 1000);
    const std::vector<float> rows = rows_of(*windows, 0, 4000);
    EXPECT_EQ(rows_of(*windows, 900, 4000), std::vector<float>(rows.begin() + 900 * 80, rows.end()));
    EXPECT_FLOAT_EQ(rows.back(), -10);  // log10 of the floor, as the build's instructions round it
  }
}

TEST(AudioWindows, FeaturesAreWhatTheProcessorMakesOfTheSamples) {
  const FrontEnd front(kMoonshine);
  const std::vector<int16_t> samples = synthetic_audio(3, 5 * 16000);
  const auto windows = AudioWindows::open(AudioSource(raw_audio(samples)), front.processor(), {}).value();
  const std::vector<float> rows = rows_of(*windows, 100, 250);
  EXPECT_EQ(rows.size(), 24000u);
  for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], static_cast<float>(samples[16000 + i]) / 32768);
  EXPECT_EQ(*windows->features(rows), *front.processor().features(rows));
  EXPECT_DOUBLE_EQ(windows->features(rows)->audio_seconds, 1.5);
}

TEST(AudioWindows, WhatIsKeptDoesNotGrowWithTheAudio) {
  for (const std::string_view config : {kWhisper, kMoonshine}) {
    const FrontEnd front(config);
    size_t most[2];
    for (const size_t i : {0, 1}) {
      constexpr size_t kMinute = 60 * 8000;
      const auto windows = AudioWindows::open(u8_wav((i == 0 ? 3 : 9) * kMinute, 8000), front.processor(),
                                              {.max_kept_bytes = size_t{1} << 20})
                               .value();
      most[i] = windows->num_kept_bytes();
      for (int64_t at = 0; at + 3000 <= windows->num_frames(); at += 2777) {
        rows_of(*windows, at, at + 3000);
        most[i] = std::max(most[i], windows->num_kept_bytes());
      }
    }
    EXPECT_EQ(most[0], most[1]) << config;
    EXPECT_LT(most[1], size_t{12} << 20) << config;
  }
}

// Who reads long audio may be stopped within a second of it, in the first pass and in one that begins anew.
TEST(AudioWindows, EveryPassAsksBeforeItReads) {
  const FrontEnd front(kWhisper);
  int num_reads = 0, most = 4;
  AudioWindows::Options options;
  options.max_kept_bytes = 0;
  options.before_read = [&] { return num_reads++ < most ? ok_status() : absl::CancelledError("enough"); };
  const AudioSource audio = synthetic_source(3, 20);
  EXPECT_EQ(AudioWindows::open(audio, front.processor(), options).status(), absl::CancelledError("enough"));
  EXPECT_EQ(num_reads, 5);
  most = 1000;
  const auto windows = AudioWindows::open(audio, front.processor(), options).value();
  EXPECT_GE(num_reads, 5 + 20);
  most = num_reads + 3;
  EXPECT_EQ(windows->rows(1500, 2000).status(), absl::CancelledError("enough"));
  most = 1000;
  EXPECT_TRUE(windows->rows(1500, 2000).ok());
}

TEST(AudioWindows, FrontEndsOfAnotherTimeAreRefused) {
  const FrontEnd hop(R"({"model_type": "whisper", "vocab_size": 10, "max_source_positions": 1200})",
                     R"({"hop_length": 200})");
  const FrontEnd window(R"({"model_type": "whisper", "vocab_size": 10, "max_source_positions": 500})",
                        R"({"chunk_length": 10})");
  for (const FrontEnd* front : {&hop, &window}) {
    const Status status = AudioWindows::open(synthetic_source(3, 1), front->processor(), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(error_message(status), HasSubstr("windows of 30 s"));
  }
}

TEST(AudioWindows, WhatTheAudioHasWrongIsSaid) {
  const FrontEnd front(kWhisper);
  EXPECT_FALSE(AudioWindows::open(AudioSource(AudioBytes::from_string("")), front.processor(), {}).ok());
  const Status longer = AudioWindows::open(synthetic_source(3, 5), front.processor(), {.max_seconds = 2}).status();
  EXPECT_THAT(error_message(longer), HasSubstr("2 s"));
}

}  // namespace
}  // namespace transept::testing
