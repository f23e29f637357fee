// The encoder's attention of encoder_int8.h on AMX's tiles.
#define TRANSEPT_AVX512_LEVEL amx
#include "attention/encoder_tiles.h"
#include "ops/tile_amx.h"

namespace transept::amx {

void attend_encoder(const AttentionTask& task) { attend_encoder_rows<TileProducts<Tiles>>(task); }

}  // namespace transept::amx
