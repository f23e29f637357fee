// The hash of an encoder input's content (SHA-256 with a tenant's salt, made by whoever reads inputs). A value; equal
// hashes mean equal inputs.
#pragma once

#include <array>
#include <cstdint>
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

}  // namespace transept
