// The encoder's attention on tiles in software, in a namespace that keeps it apart from the library's.
#define TRANSEPT_AVX512_LEVEL software_amx
#include "attention/encoder_tiles.h"
#include "ops/tile_software_testing.h"

namespace transept::software_amx {

void attend_encoder(const AttentionTask& task);
void attend_encoder(const AttentionTask& task) { attend_encoder_rows<TileProducts<SoftwareTiles<Vec>>>(task); }

}  // namespace transept::software_amx
