#include "server/instance_families.h"

#include <utility>

#include "server/metric_families.h"

namespace transept {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

void add_transfers(const EcStats& ec, const std::string& side, MetricFamilies& out) {
  std::vector<ClientMetric> ended;
  for (size_t i = 0; i < kNumEcOutcomes; ++i) {
    const auto outcome = static_cast<EcOutcome>(i);
    ended.push_back(counter_of(static_cast<double>(ec.num_ended_by(outcome)),
                               out.with({{"side", side}, {"verdict", std::string(name(outcome))}})));
  }
  out.add("transept_ec_transfers_total", "Transfers of encoder outputs that ended, by how they ended.",
          MetricType::Counter, std::move(ended));
  out.counts("transept_ec_bytes_total", "Bytes of encoder outputs that were sent, or that have come whole.", "side",
             {{side, ec.num_bytes}});
}

void add_times(const InstanceStats& instance, const EcStats& ec, MetricFamilies& out) {
  const bool encodes = instance.role == InstanceRole::kEncode;
  std::vector<ClientMetric> phases;
  for (size_t i = 0; i < kNumEcPhases; ++i) {
    const auto phase = static_cast<EcPhase>(i);
    if ((phase != EcPhase::kClaim) != encodes) continue;
    phases.push_back(histogram_of(ec.seconds_of(phase), out.with({{"phase", std::string(name(phase))}})));
  }
  out.add("transept_ec_seconds",
          "Time of a transfer's phases: announced until there is room, encoded, sent, taken, claimed by its request.",
          MetricType::Histogram, std::move(phases));
  if (!encodes) return;
  out.add("transept_ec_queue_seconds", "From the offer of an encode until this instance has taken it.",
          MetricType::Histogram, {histogram_of(instance.queue, out.with({}))});
}

void add_room(const EcStats& ec, MetricFamilies& out) {
  out.gauge("transept_ec_waiting_alloc", "Announced encoder outputs that wait for room.", ec.num_waiting_alloc);
  out.gauge("transept_ec_slots_total", "Encoder positions that outputs may hold (--ec-buffer-memory).", ec.num_slots);
  out.gauge("transept_ec_slots_reserved", "Encoder positions held for outputs whose rows are not there yet.",
            ec.num_reserved_slots);
  out.gauge("transept_ec_slots_used", "Encoder positions of outputs that are there and in use.", ec.num_used_slots);
}

void add_peers(const PeerCounts& peers, MetricFamilies& out) {
  std::vector<ClientMetric> metrics;
  for (const InstanceRole role : {InstanceRole::kEncode, InstanceRole::kDecode}) {
    for (size_t state = 0; state < PeerCounts::kNumStates; ++state) {
      const auto count = static_cast<double>(peers.by_role[static_cast<size_t>(role)][state]);
      metrics.push_back(gauge_of(count, out.with({{"role", std::string(name(role))},
                                                  {"state", std::string(PeerCounts::kStateNames[state])}})));
    }
  }
  out.add("transept_ec_peers", "Instances that the broker has a record of, this one included.", MetricType::Gauge,
          std::move(metrics));
}

}  // namespace

void append_instance_families(const InstanceStats& instance, const EngineState& engine, const std::string& model_name,
                              std::vector<prometheus::MetricFamily>& families) {
  MetricFamilies out({{"model_name", model_name}}, families);
  const EcStats& ec = engine.ec;
  add_transfers(ec, instance.role == InstanceRole::kEncode ? "sender" : "receiver", out);
  add_times(instance, ec, out);
  add_room(ec, out);
  out.count("transept_ec_retries_total", "Messages, outputs and asked encodes that were sent, or taken, again.",
            ec.num_retries + instance.num_retries);
  out.count("transept_ec_expired_total", "Transfers that ended by a lease or deadline, or that no request claimed.",
            ec.num_expired);
  out.count("transept_ec_hits_total", "Encoder outputs that were there already: not encoded, or not sent.",
            ec.num_hits);
  out.count("transept_ec_local_encodes_total", "Inputs that a decode instance encoded itself.",
            engine.stats.num_local_encodes);
  add_peers(instance.peers, out);
  std::vector<std::pair<std::string, int64_t>> refused;
  for (const auto& [reason, count] : instance.frames_refused) refused.emplace_back(reason, count);
  refused.emplace_back("inbox_full", ec.num_dropped_messages);
  out.counts("transept_ec_frames_refused_total", "Frames of other instances that were refused or dropped.", "reason",
             refused);
}

}  // namespace transept
