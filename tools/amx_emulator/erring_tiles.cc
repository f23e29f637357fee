// AMX's kernels on tiles in software that take signed bytes for unsigned ones, as Bochs does (tools/amx_emulator.py).
#define TRANSEPT_AVX512_LEVEL erring_amx
#include "attention/encoder_tiles.h"
#include "ops/dot_tile.h"
#include "ops/tile_kernel.h"
#include "ops/tile_software_testing.h"

namespace transept::erring_amx {

typedef SoftwareTiles<Vec, uint8_t> ErringTiles;

extern const TileGemmKernels kTileGemmKernels;
constexpr TileGemmKernels kTileGemmKernels = make_tile_gemm_kernels<Vec, TileDot, ErringTiles>();

void attend_encoder(const AttentionTask& task);
void attend_encoder(const AttentionTask& task) { attend_encoder_rows<TileProducts<ErringTiles>>(task); }

}  // namespace transept::erring_amx
