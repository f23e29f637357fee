// For tests: the tiny Whisper of tests/models/whisper-transcribes with an engine around it, and sound for it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/source_dir_testing.h"
#include "speech/speech_testing.h"
#include "speech/transcriber.h"
#include "startup/load_engine.h"

namespace transept::testing {

using Silence = std::vector<std::pair<size_t, size_t>>;  // samples [begin, end)

// 16-bit samples of 16 kHz: triangle waves and noise by turns (tests/make_transcripts.py, synthetic_audio).
inline std::vector<int16_t> synthetic_audio(uint32_t seed, size_t num_samples, const Silence& silence = {}) {
  uint32_t state = seed;
  const auto draw = [&](int32_t count) {
    state = state * 1664525 + 1013904223;
    return static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(count));
  };
  std::vector<int16_t> out(num_samples);
  for (size_t at = 0; at < num_samples;) {
    const auto length = size_t{800} + static_cast<size_t>(draw(6400));
    const int32_t kind = draw(4), period = 20 + draw(180), loudness = 500 + draw(8000);
    const size_t end = std::min(at + length, num_samples);
    for (size_t i = at; i < end && kind > 0; ++i) {
      const auto phase = static_cast<int32_t>(i - at) % period;
      // Rounded down, as Python divides.
      const int32_t wave = 4 * loudness * std::abs(phase - period / 2) / period - loudness;
      out[i] = static_cast<int16_t>(kind == 3 ? draw(2 * loudness + 1) - loudness : wave);
    }
    at += length;
  }
  for (const auto& [begin, end] : silence) {
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(begin), out.begin() + static_cast<std::ptrdiff_t>(end), 0);
  }
  return out;
}

inline RawAudio raw_audio(const std::vector<int16_t>& samples) {
  RawAudio raw;
  raw.sampling_rate = 16000;
  for (const int16_t sample : samples) raw.samples.push_back(static_cast<float>(sample) / 32768);
  return raw;
}

inline AudioSource synthetic_source(uint32_t seed, double seconds, const Silence& silence = {}) {
  return AudioSource(raw_audio(synthetic_audio(seed, static_cast<size_t>(seconds * 16000), silence)));
}

inline std::string model_folder(std::string_view name) { return str_cat(source_dir(), "/tests/models/", name); }

// A loaded model whose engine runs.
class House final {
 public:
  explicit House(EngineConfig config = {}, int32_t max_queued = 512) {
    if (config.model.empty()) config.model = model_folder("whisper-transcribes");
    if (!config.kv_cache_memory.has_value()) config.kv_cache_memory = uint64_t{64} << 20;
    config.threads = 1;
    config.caches_inputs = config.caches_prefixes = false;  // what is encoded is counted
    auto loaded = load_engine(config, clock_);
    CHECK(loaded.ok(), error_message(loaded.status()));
    model_ = std::make_unique<LoadedModel>(std::move(loaded).value());
    engine_ = std::make_unique<AsyncEngine>(std::move(model_->engine), AsyncEngine::Options{max_queued}, clock_);
    speech_ = SpeechModel::of(*model_, *engine_).value();
  }

  LoadedModel& model() { return *model_; }
  AsyncEngine& engine() { return *engine_; }
  SpeechModel& speech() { return speech_; }
  const SpeechModel& speech() const { return speech_; }

  StatusOr<TranscribeResult> transcribe(const AudioSource& audio, const TranscribeOptions& options,
                                        const TranscribeObserver& observer = {},
                                        const TranscribeLimits& limits = {}) const {
    return Transcriber(speech_).transcribe(audio, options, observer, limits);
  }

  int64_t num_encoder_runs() const { return engine_->snapshot().executor.num_encoder_runs; }

 private:
  SteadyClock clock_;
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<AsyncEngine> engine_;
  SpeechModel speech_;
};

// One answer a window, and nothing random.
inline TranscribeOptions greedy_options() {
  TranscribeOptions options;
  options.language = "en";
  options.temperature_increment = std::nullopt;
  options.thresholds = {std::nullopt, std::nullopt, std::nullopt};
  options.beam_size = 1;
  return options;
}

inline TranscribeOptions batched_options() {
  TranscribeOptions options = greedy_options();
  options.mode = TranscribeMode::kBatched;
  return options;
}

inline void expect_same(const Transcript& actual, const Transcript& expected) {
  EXPECT_EQ(actual.text, expected.text);
  EXPECT_EQ(actual.language, expected.language);
  ASSERT_EQ(actual.segments.size(), expected.segments.size());
  for (size_t i = 0; i < expected.segments.size(); ++i) {
    SCOPED_TRACE(str_cat("segment ", i));
    const Segment &got = actual.segments[i], &want = expected.segments[i];
    EXPECT_EQ(got.id, want.id);
    EXPECT_EQ(got.seek, want.seek);
    EXPECT_EQ(got.start, want.start);
    EXPECT_EQ(got.end, want.end);
    EXPECT_EQ(got.text, want.text);
    EXPECT_EQ(got.tokens, want.tokens);
    EXPECT_EQ(got.temperature, want.temperature);
    expect_words(got.words, want.words);
  }
}

}  // namespace transept::testing
