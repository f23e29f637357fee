// The hash of an encoder input's content: by it groups with the same input find each other's cross table. A value.
//
// Whoever hands hashes to the block manager promises that equal ones mean equal inputs. A hash alone cannot promise
// that: the engine compares the inputs too (engine/shared_inputs.h), and makes the hash of a second content differ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace transept {

struct ContentHash {
  std::array<uint64_t, 4> words{};

  bool operator==(const ContentHash&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const ContentHash& hash) {
    return H::combine(std::move(state), hash.words);
  }
};

// A secret: who does not know it cannot make contents that collide.
struct ContentHashKey {
  std::array<uint64_t, 2> words{};

  // From the system's source of randomness.
  static ContentHashKey random();
};

// SipHash-2-4 with 128 bits (Aumasson and Bernstein, "SipHash: a fast short-input PRF", and its reference
// implementation for the long output) in words 0 and 1; the number of bytes in word 2; word 3 is 0.
ContentHash content_hash(const ContentHashKey& key, std::span<const std::byte> content);

}  // namespace transept
