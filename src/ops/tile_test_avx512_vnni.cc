// Software tiles behind the vectors that AMX's kernels have beside the real ones: a name of their own keeps them apart
// from the library's.
#define TRANSEPT_AVX512_LEVEL software_amx
#include "ops/dot_tile.h"
#include "ops/tile_kernel.h"
#include "ops/tile_software_testing.h"

namespace transept::software_amx {

extern const TileGemmKernels kTileGemmKernels;
constexpr TileGemmKernels kTileGemmKernels = make_tile_gemm_kernels<Vec, TileDot, SoftwareTiles<Vec>>();

}  // namespace transept::software_amx
