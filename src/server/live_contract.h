// Stands in for speech/live_session.h until that is merged: the same names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "speech/transcription.h"

namespace transept {

inline constexpr int32_t kMinLiveRate = 8000, kMaxLiveRate = 48000;
inline constexpr double kLiveHighSeconds = 60, kLiveLowSeconds = 30;

enum class LiveDelay : uint8_t { kMinimal, kLow, kMedium, kHigh, kXhigh };

inline std::optional<LiveDelay> parse_live_delay(std::string_view name) {
  if (name == "minimal") return LiveDelay::kMinimal;
  if (name == "low") return LiveDelay::kLow;
  if (name == "medium") return LiveDelay::kMedium;
  if (name == "high") return LiveDelay::kHigh;
  return name == "xhigh" ? std::optional(LiveDelay::kXhigh) : std::nullopt;
}
inline std::string_view live_delay_name(LiveDelay delay) {
  constexpr std::string_view kNames[] = {"minimal", "low", "medium", "high", "xhigh"};
  return kNames[static_cast<size_t>(delay)];
}

struct LiveTurnDetection {
  double threshold = 0.5;
  int32_t prefix_padding_ms = 300;
  int32_t silence_duration_ms = 500;

  bool operator==(const LiveTurnDetection&) const = default;
};

struct LiveOptions {
  int32_t sampling_rate = 24000;
  std::string language;
  std::vector<std::string> languages;
  std::string prompt;
  std::string hotwords;
  LiveDelay delay = LiveDelay::kMedium;
  std::optional<LiveTurnDetection> turn_detection = LiveTurnDetection{};
  double max_item_seconds = 1800;
  std::string cache_salt;
  bool wants_hypotheses = false;

  bool operator==(const LiveOptions&) const = default;
};

struct LiveTranscript {
  std::string text;
  bool was_revised = false;
  double seconds = 0;
  std::string language;
  std::vector<LanguageGuess> languages;
  int64_t num_words_told = 0;
  int64_t num_words_revised = 0;
  TranscribeCounts counts;
  TranscribeTimes times;
};

class LiveObserver {
 public:
  virtual ~LiveObserver() = default;
  virtual void on_speech_started(int64_t item, int64_t audio_start_ms) = 0;
  virtual void on_speech_stopped(int64_t item, int64_t audio_end_ms) = 0;
  virtual void on_committed(int64_t item) = 0;
  virtual void on_cleared() = 0;
  virtual void on_delta(int64_t item, std::string_view text) = 0;
  virtual void on_hypothesis(int64_t item, std::string_view open) = 0;
  virtual void on_completed(int64_t item, const LiveTranscript& transcript) = 0;
  virtual void on_failed(int64_t item, const Status& error) = 0;
  virtual void on_audio_taken() = 0;
  virtual void on_finished() = 0;
};

}  // namespace transept
