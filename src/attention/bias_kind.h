// The kinds of biases, and a bias as kernels read it. A header without the standard library, because kernel files
// include it (ops/kernels.h).
#pragma once

#include <stdint.h>

namespace transept {

enum class BiasKind : uint8_t { kNone, kMaterialized, kByDistance, kAlibi };

// Floats past either end of a kByDistance table, which repeat that end: a vector of keys may begin or end there.
static constexpr int64_t kDistancePadding = 16;

// The bias of one query and head. Borrows its values. Positions count from a sequence's first key: distance = key -
// query.
struct RowBias {
  BiasKind kind = BiasKind::kNone;
  // kMaterialized: the value of key 0. kByDistance: of distance 0, inside a table of [-max_distance - kDistancePadding,
  // max_distance + kDistancePadding). kAlibi: the head's slope.
  const float* values = nullptr;
  int64_t key_stride = 0;    // kMaterialized: floats between keys
  int64_t max_distance = 0;  // kByDistance
  int64_t position = 0;      // of the query
};

}  // namespace transept
