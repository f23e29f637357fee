#include "encoder_cache/ec_stats.h"

#include <algorithm>
#include <numeric>

namespace transept {

void EcHistogram::observe(Duration duration) {
  const double value = std::max(transept::seconds(duration), 0.0);
  const auto bound = std::ranges::lower_bound(kBounds, value);
  ++counts[static_cast<size_t>(bound - kBounds.begin())];
  sum += value;
}

int64_t EcHistogram::count() const { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

void EcHistogram::add(const EcHistogram& more) {
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += more.counts[i];
  sum += more.sum;
}

std::string_view name(EcPhase phase) {
  static constexpr std::string_view kNames[kNumEcPhases] = {"announce", "encode", "send", "inject", "claim"};
  return kNames[static_cast<size_t>(phase)];
}

std::string_view name(EcOutcome outcome) {
  static constexpr std::string_view kNames[kNumEcOutcomes] = {"injected", "hit",  "never",   "incompatible",
                                                              "busy",     "gone", "expired", "cancelled"};
  return kNames[static_cast<size_t>(outcome)];
}

void EcStats::add(const EcStats& more) {
  for (size_t i = 0; i < num_ended.size(); ++i) num_ended[i] += more.num_ended[i];
  for (size_t i = 0; i < seconds.size(); ++i) seconds[i].add(more.seconds[i]);
  num_bytes += more.num_bytes;
  num_retries += more.num_retries;
  num_expired += more.num_expired;
  num_hits += more.num_hits;
  num_waiting_alloc += more.num_waiting_alloc;
  num_transfers += more.num_transfers;
  num_slots += more.num_slots;
  num_reserved_slots += more.num_reserved_slots;
  num_used_slots += more.num_used_slots;
  num_dropped_messages += more.num_dropped_messages;
}

}  // namespace transept
