// What the parts of an instance beside its engine have counted, for metrics (docs/scaling.md). Values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "encoder_cache/broker.h"
#include "encoder_cache/ec_stats.h"

namespace transept {

// Instances that have a record, this one included.
struct PeerCounts {
  enum State : uint8_t { kReady, kDraining, kOtherModel, kOtherSecret };
  static constexpr std::string_view kStateNames[] = {"ready", "draining", "other_model", "other_secret"};
  static constexpr size_t kNumRoles = 3, kNumStates = 4;

  std::array<std::array<int64_t, kNumStates>, kNumRoles> by_role{};  // by InstanceRole and State
};

struct InstanceStats {
  InstanceRole role = InstanceRole::kDecode;
  std::vector<std::pair<std::string_view, int64_t>> frames_refused;  // by reason
  PeerCounts peers;
  EcHistogram queue;        // encode: TicketTaker::Counts::waited
  int64_t num_retries = 0;  // tickets that another instance had before, or that were offered again
};

}  // namespace transept
