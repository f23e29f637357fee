#include "server/realtime_families.h"

#include <utility>

#include "server/metric_families.h"

namespace transept {
namespace {

constexpr double kSecond = 1e6;  // of what is counted in microseconds

template <size_t kCount>
std::vector<std::pair<std::string, int64_t>> by_name(const std::array<std::string_view, kCount>& names,
                                                     const std::array<std::atomic<int64_t>, kCount>& counts) {
  std::vector<std::pair<std::string, int64_t>> values;
  for (size_t i = 0; i < kCount; ++i) values.emplace_back(names[i], counts[i].load());
  return values;
}

}  // namespace

void append_realtime_families(const RealtimeStats& stats, const std::string& model_name,
                              std::vector<prometheus::MetricFamily>& families) {
  const RealtimeCounts& counts = stats.counts;
  const LiveCounts& heard = stats.heard;
  MetricFamilies out({{"model_name", model_name}}, families);
  out.gauge("transept:live_sessions", "Live sessions that are open.", counts.num_sessions.load());
  out.count("transept:live_sessions_total", "Live sessions that were opened.", counts.num_opened.load());
  out.count("transept:live_sessions_expired_total", "Live sessions that lasted as long as one may.",
            counts.num_expired.load());
  out.counts("transept:live_items_total", "Items of live sessions that ended, by how.", "end",
             by_name(RealtimeCounts::kEndNames, counts.ends));
  out.count("transept:live_revised_items_total",
            "Items whose transcript does not begin with what was sent of it before.", counts.num_revised.load());
  out.counts("transept:live_hypotheses_total",
             "Hypotheses over open items: answered, or lost: refused by a full queue, failed, or overtaken by the end "
             "of their item.",
             "what", {{"answered", heard[LiveCount::kHypotheses]}, {"lost", heard[LiveCount::kLostHypotheses]}});
  out.count("transept:live_words_total", "Words that were sent before their item's commit.",
            heard[LiveCount::kWordsTold]);
  out.count("transept:live_revised_words_total", "Of these, words that the transcript has not at their place.",
            heard[LiveCount::kWordsRevised]);
  out.counts("transept:live_client_events_total",
             "Messages of live clients by what they ask for; error: refused, counted besides.", "kind",
             by_name(RealtimeCounts::kInNames, counts.in));
  out.counts("transept:live_server_events_total", "Messages sent to live clients.", "kind",
             by_name(RealtimeCounts::kOutNames, counts.out));
  out.count("transept:live_audio_seconds_total", "Seconds of audio of completed items.",
            static_cast<double>(counts.audio_us.load()) / kSecond);
  out.count("transept:live_paused_seconds_total",
            "Seconds for which live sockets were not read, as audio came faster than it was heard.",
            static_cast<double>(counts.paused_us.load()) / kSecond);
}

}  // namespace transept
