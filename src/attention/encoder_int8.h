// Encoders' attention over int8 keys and values with AVX512-VNNI, and on AMX's tiles: the declarations that the cpu
// backend and the kernel files share (ops/kernels.h has the rule that this header obeys). Both levels give the same
// bits. Functions without state: thread-safe for different tasks.
//
// An encoder's keys serve one input, so they are written in the layout that the products read: tiles of 64 keys of one
// head,
//   scales of K float32 [64], scales of V float32 [width], K uint8 [depth / 4, 64, 4], V int8 [16, width, 4];
//   depth: head_dim rounded up to a multiple of 4; width: to one of 16
// Row r of V holds keys 16 (r % 4) + 4 (r / 4) and the three after, the order of a row's probabilities after conversion
// to bytes. K has a scale for each key, and 128 added. V has a scale for each dimension of the tile, so probabilities
// have none and fit a byte. Places past the last key and dimension are zero (K: 128). A tile with an entry that is not
// finite has NaN as V's scales, so every row that reads it becomes NaN.
#pragma once

#include "attention/cpu_kernels.h"

namespace transept {

static constexpr int kEncoderItemRows = 48;  // rows of q whose sums stay in the first-level cache
// Rows of a chunk, which are multiplied with a tile together: as many as vectors have registers for, and as a tile of
// AMX has.
static constexpr int kEncoderVectorRows = 12;
static constexpr int kEncoderTileRows = 16;

struct EncoderTile {
  int64_t v_scales, k, v, bytes;  // offsets in bytes; K's scales lie at 0
};

static inline EncoderTile encoder_tile(int64_t head_dim) {
  const int64_t depth = (head_dim + 3) / 4 * 4, width = (head_dim + 15) / 16 * 16;
  EncoderTile tile;
  tile.v_scales = kTileKeys * 4;
  tile.k = tile.v_scales + width * 4;
  tile.v = tile.k + depth * kTileKeys;
  // AMX reads sixteen rows of K at a time. Bytes past K are multiplied with zeros of q, but must be readable.
  const int64_t read = tile.k + (depth + 63) / 64 * 64 * kTileKeys;
  tile.bytes = tile.v + width * kTileKeys;
  if (tile.bytes < read) tile.bytes = read;
  return tile;
}

// Bytes of AttentionTask::words: a chunk's integers of q, and the state of each row's softmax.
static inline int64_t encoder_chunk_bytes(int64_t chunk_rows, int64_t head_dim) {
  return chunk_rows * ((head_dim + 63) / 64 * 64) + (2 * chunk_rows + 2) * 64;
}
static inline int64_t encoder_room(int64_t rows, int64_t head_dim, int64_t chunk_rows) {
  return (rows + chunk_rows - 1) / chunk_rows * encoder_chunk_bytes(chunk_rows, head_dim);
}

namespace avx512_vnni {
// Writes the keys and values of one tile. write.part: the tile's start, 64 keys at most.
void write_encoder_tile(const KvWrite& write);
// Computes rows that see all of their keys and whose probabilities are not wanted. Tile i begins at cache + blocks[i] *
// block_stride; sums: [num_rows, head_dim rounded up to a multiple of 16]; words: encoder_room() bytes.
void attend_encoder(const AttentionTask& task);
}  // namespace avx512_vnni
namespace amx {  // reads tiles of avx512_vnni::write_encoder_tile
void attend_encoder(const AttentionTask& task);
}

}  // namespace transept
