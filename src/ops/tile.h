// Tiles of 16 rows of 64 bytes (AMX), for the kernels that multiply in them (ops/kernels.h has the rule for such
// files).
//
// Kernels are templates over T, the type that multiplies tiles: tile_amx.h has the instructions;
// tile_software_testing.h has a T in software that follows Intel's manual, because few build machines have AMX. A T is
// made with a TileConfig and holds eight tiles, each addressed by a constant:
//   zero<tile>(); load<tile>(from, stride); store<tile>(to, stride);      stride: bytes between rows
//   dot_u8s8<sum, a, b>(), dot_s8u8<sum, a, b>(), dot_bfloat16<sum, a, b>()   sum += a b
// The configuration belongs to the thread. A T releases it when it is destroyed, which must happen before the thread
// runs other work.
#pragma once

#include <stdint.h>

namespace transept {

static constexpr int kTileRows = 16;
static constexpr int kTileRowBytes = 64;

// The layout that LDTILECFG reads.
struct alignas(64) TileConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64, "");

// Returns a configuration of eight tiles of 16 rows of 64 bytes.
static inline TileConfig whole_tiles() {
  TileConfig config = {};
  config.palette = 1;
  for (int i = 0; i < 8; ++i) config.row_bytes[i] = kTileRowBytes, config.rows[i] = kTileRows;
  return config;
}

// Calls body(TileIndex<i>{}) for i = kBegin, ..., kEnd - 1: tiles are addressed by constants.
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
