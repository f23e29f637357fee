// What a user of live transcription chooses, and what that means for the hypotheses. Values and pure functions:
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "speech/local_agreement.h"
#include "speech/transcribe_options.h"
#include "speech/transcription.h"

namespace transept {

inline constexpr int32_t kMinLiveRate = 8000, kMaxLiveRate = 48000;  // hertz
// RequestSpec::priority: speakers wait for their transcripts, files can.
inline constexpr int32_t kLiveFinalPriority = -2, kLiveHypothesisPriority = -1;
inline constexpr int64_t kMinCommitMs = 100;  // OpenAI's least length of an item

// How long words wait for others to confirm them.
enum class LiveDelay : uint8_t { kMinimal, kLow, kMedium, kHigh, kXhigh };

// None: not one of minimal, low, medium, high, xhigh.
std::optional<LiveDelay> parse_live_delay(std::string_view name);
std::string_view live_delay_name(LiveDelay delay);

// When a hypothesis is made, and when a word of it is told.
struct LivePolicy {
  AgreementRule agreement;
  double least_mean_logprob = -1;  // of a hypothesis that confirms words. The transcript would not take less, either
  double hop_seconds = 0.5;        // of new audio before the next hypothesis
  bool has_hypotheses = true;      // false: no words before the commit
};
LivePolicy live_policy(LiveDelay delay);

// Turns by voice activity.
struct LiveTurnDetection {
  double threshold = 0.5;             // probability at which speech begins, [0, 1]
  int32_t prefix_padding_ms = 300;    // audio before it that is part of the item, [0, 10000]
  int32_t silence_duration_ms = 500;  // that ends a turn, [20, 10000]

  bool operator==(const LiveTurnDetection&) const = default;
};

struct LiveOptions {
  int32_t sampling_rate = 24000;       // hertz, of append(); kMinLiveRate to kMaxLiveRate
  std::string language;                // code or English name; "": detected for each item, and kept if it is sure
  std::vector<std::string> languages;  // detection chooses among these; empty: all
  std::string prompt;                  // TranscribeOptions::initial_prompt of each item
  std::string hotwords;                // TranscribeOptions::hotwords
  LiveDelay delay = LiveDelay::kMedium;
  std::optional<LiveTurnDetection> turn_detection = LiveTurnDetection{};  // none: the caller commits
  double max_item_seconds = 1800;                                         // without turn detection; above 0, to 14400
  std::string cache_salt;
  bool wants_hypotheses = false;  // LiveObserver::on_hypothesis is called
  bool wants_logprobs = false;    // LiveTranscript::tokens

  bool operator==(const LiveOptions&) const = default;
};

// Checks all that does not need the engine. Errors: kInvalidArgument with the option as param ("sampling_rate",
// "language", "languages", "prompt", "hotwords", "turn_detection.threshold", "turn_detection.prefix_padding_ms",
// "turn_detection.silence_duration_ms", "max_item_seconds").
Status check_live_options(const LiveOptions& options, const SpeechModel& model);

// How an item is transcribed: `base` with the fields that LiveOptions has.
TranscribeOptions live_transcribe_options(const TranscribeOptions& base, const LiveOptions& options,
                                          const SpeechModel& model);

}  // namespace transept
