// Counter-based random numbers: each is a function of (request seed, sequence index, position), so preemption, batching
// and order never change a text. Pure: thread-safe.
#pragma once

#include <cstdint>

namespace transept {

// One step of SplitMix64 (Steele, Lea, Flood 2014).
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Returns a number uniform in [0, 1), of 53 bits.
constexpr double uniform(uint64_t seed, uint32_t seq_index, uint32_t position) {
  const uint64_t counter = (static_cast<uint64_t>(seq_index) << 32) | position;
  return static_cast<double>(mix64(mix64(seed) ^ mix64(~counter)) >> 11) * 0x1.0p-53;
}

}  // namespace transept
