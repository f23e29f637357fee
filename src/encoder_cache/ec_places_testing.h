// For tests: what the receiving thread does with the bytes of a chunk.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "encoder_cache/connector.h"

namespace transept::testing {

// Writes a chunk but for its first `skip` bytes to where they belong.
inline void store_in_places(const EcPlaces& places, const EcChunk& chunk, size_t skip) {
  uint64_t begin = 0;  // of the place, in the output
  for (const std::span<std::byte> place : places) {
    const uint64_t first = std::max(begin, chunk.offset + skip);
    const uint64_t last = std::min(begin + place.size(), chunk.offset + chunk.bytes.size());
    if (first < last) std::memcpy(&place[first - begin], &chunk.bytes[first - chunk.offset], last - first);
    begin += place.size();
  }
}

}  // namespace transept::testing
