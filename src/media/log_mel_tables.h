// The tables of one front end, computed in double precision and kept in single. Immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "base/isa.h"
#include "media/log_mel_kernels.h"
#include "media/log_mel_options.h"

namespace transept {

// Slaney's mel filters, of area 1 (librosa, filters.mel with htk=False, norm="slaney"), as their parts that are not
// zero: weights of frequencies first[i] .. + count[i] - 1, one filter after the other.
struct MelFilters {
  std::vector<int32_t> first;
  std::vector<int32_t> count;
  std::vector<float> weights;
};
MelFilters make_mel_filters(const LogMelOptions& options);

struct LogMelTables {
  // REQUIRES: options that LogMel::create accepts.
  LogMelTables(const LogMelOptions& options, Isa isa);
  LogMelTables(const LogMelTables&) = delete;
  LogMelTables& operator=(const LogMelTables&) = delete;

  LogMelOptions options;
  LogMelPlan plan;
  LogMelFunction frames;

 private:
  void plan_transform();

  std::vector<float> window_;
  std::vector<float> split_;
  std::vector<FourierStage> stages_;
  std::vector<std::vector<float>> twiddles_;  // of each stage
  std::vector<std::vector<float>> roots_;     // of each stage
  MelFilters filters_;
};

}  // namespace transept
