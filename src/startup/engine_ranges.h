// The ranges of EngineConfig's numbers, for flags and for options of the library.
#pragma once

#include <cstdint>

namespace transept {

constexpr int64_t kMaxEngineCount = 1 << 24;  // tokens of a step, positions
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxReplicas = 1024;
constexpr int64_t kMaxBlockSize = 1024;
constexpr int64_t kMaxNumSeqs = 65536;
constexpr int64_t kMaxEcLeaseSeconds = 3600;
constexpr double kMaxWatermark = 0.99;

}  // namespace transept
