#define TRANSEPT_AVX512_LEVEL amx
#include "ops/dot_tile.h"
#include "ops/tile_amx.h"
#include "ops/tile_kernel.h"

namespace transept::amx {

constexpr TileGemmKernels kTileGemmKernels = make_tile_gemm_kernels<Vec, TileDot, Tiles>();

}  // namespace transept::amx
