// Many people speaking to a server at once: sessions of /v1/realtime that send recordings in real time. Each session
// has a thread, and its connection another.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "load/live_meter.h"
#include "load/statistics.h"
#include "net/http_client.h"

namespace transept {

struct LiveLoad {
  static constexpr int32_t kRate = 16000;  // hertz, of the clips

  HttpUrl url;  // of the API: its path ends with /v1
  std::string api_key, model, language;
  std::string delay = "low";
  std::vector<std::vector<int16_t>> clips;  // 16-bit mono; session i begins with clip i
  int64_t num_sessions = 1;
  double seconds = 0;             // of audio that each session sends; 0: each clip once, all of them
  double pause_seconds = 1;       // of silence behind each clip, which ends its turn
  bool wants_hypotheses = false;  // the server is a Transept, which tells them
  bool sends_binary = false;      // audio as binary messages, which a Transept takes; else as events with base64
  std::chrono::milliseconds patience{30000};  // for the last transcripts
  std::function<bool()> is_stopped = [] { return false; };
};

// Returns what each session measured, in their order. A session that cannot be opened says so in `error`.
std::vector<LiveSessionMeasure> run_live_load(const LiveLoad& load);

// Of all sessions together. Latencies are in seconds.
struct LiveMetrics {
  int64_t num_sessions = 0, num_failed = 0;  // failed: with an error, or ended early
  int64_t num_turns = 0, num_failed_turns = 0, num_revised = 0, num_without_text = 0;
  int64_t num_told_words = 0,
          num_revised_words = 0;  // told before the end of their turn; of these, not in its transcript
  int64_t num_kept_up = 0;        // sessions without failure whose hypotheses' 95th percentile is at most 0.5 s late
  double audio_s = 0;
  Statistics first_text, completed, hop;
};

// Returns how many words `told` has, and how many of them are not in their place in `transcript`.
using CountWords = std::function<std::pair<int64_t, int64_t>(std::string_view told, std::string_view transcript)>;

// `hop_s`: how often a hypothesis is due. Sessions of servers that tell none keep up if they do not fail.
LiveMetrics measure_live(const std::vector<LiveSessionMeasure>& sessions, double hop_s, const CountWords& count_words);
Json live_metrics_json(const LiveMetrics& metrics);
std::string live_metrics_table(const LiveMetrics& metrics);

}  // namespace transept
