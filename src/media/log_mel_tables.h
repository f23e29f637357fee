// The tables of one front end, computed in double and kept in single precision. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "base/isa.h"
#include "media/log_mel_kernels.h"
#include "media/log_mel_options.h"

namespace transept {

// Slaney's mel filters, of area 1 (librosa, filters.mel with htk=False, norm="slaney"), without their zeros: filter i
// has the weights of frequencies first[i] .. first[i] + count[i] - 1. `weights` concatenates those of all filters.
struct MelFilters {
  std::vector<int32_t> first;
  std::vector<int32_t> count;
  std::vector<float> weights;
};
// REQUIRES: options that LogMel::create accepts.
MelFilters make_mel_filters(const LogMelOptions& options);

struct LogMelTables {
  // REQUIRES: options that LogMel::create accepts.
  LogMelTables(const LogMelOptions& options, Isa isa);
  LogMelTables(const LogMelTables&) = delete;
  LogMelTables& operator=(const LogMelTables&) = delete;

  LogMelOptions options;
  LogMelPlan plan;
  LogMelFunction frames;  // the kernel of the level: AVX2 from Isa::kAvx2 on

 private:
  void plan_transform();

  std::vector<float> window_;
  std::vector<float> split_;
  std::vector<FourierStage> stages_;
  std::vector<std::vector<float>> twiddles_;  // one per stage
  std::vector<std::vector<float>> roots_;     // one per stage
  MelFilters filters_;
};

}  // namespace transept
