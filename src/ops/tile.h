// Tiles of 16 rows of 64 bytes (AMX): what they are, for the kernels that multiply in them (ops/kernels.h has the rule
// for such files).
//
// Kernels are templates over T, what multiplies tiles: tile_amx.h has the instructions, tile_software_testing.h a T in
// software that does what Intel's manual defines, because few machines that build this have AMX. A T is made with a
// TileConfig and holds eight tiles, each addressed by a constant:
//   zero<tile>(); load<tile>(from, stride); store<tile>(to, stride);
//   dot_u8s8<sum, a, b>(), dot_s8u8<sum, a, b>(), dot_bfloat16<sum, a, b>()   sum += a b
// The configuration is the thread's: the owner of a T releases it before a thread goes on to something else.
#pragma once

#include <stdint.h>

namespace transept {

static constexpr int kTileRows = 16;
static constexpr int kTileRowBytes = 64;

// As LDTILECFG reads it.
struct alignas(64) TileConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64, "");

// Eight tiles of all their rows and bytes.
static inline TileConfig whole_tiles() {
  TileConfig config = {};
  config.palette = 1;
  for (int i = 0; i < 8; ++i) config.row_bytes[i] = kTileRowBytes, config.rows[i] = kTileRows;
  return config;
}

// Calls body of a type whose kValue is kBegin, ..., kEnd - 1: tiles are addressed by constants.
template <int kIndex>
struct TileIndex {
  static constexpr int kValue = kIndex;
};
template <int kBegin, int kEnd, class Body>
[[gnu::always_inline]] static inline void for_constants(Body&& body) {
  if constexpr (kBegin < kEnd) {
    body(TileIndex<kBegin>{});
    for_constants<kBegin + 1, kEnd>(body);
  }
}

}  // namespace transept
