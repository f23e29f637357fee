// Encoders' attention over int8 keys and values with AVX512-VNNI, and on AMX's tiles: what the cpu backend and the
// kernel files share (ops/kernels.h has the rule that this header obeys). Both give the same bits.
//
// An encoder's keys serve one input and are written for it alone, so they lie as the products want them: tiles of 64
// keys of one head,
//   scales of K float32 [64], scales of V float32 [width], K uint8 [depth / 4, 64, 4], V int8 [16, width, 4];
//   depth: head_dim rounded up to a multiple of 4; width: to one of 16
// Row r of V holds keys 16 (r % 4) + 4 (r / 4) to three further, which is how a row's probabilities lie when they have
// become bytes. K has a scale for each key and 128 added. V has a scale for each dimension of the tile, which leaves
// the probabilities without one: they need but a byte. Places past the last key and dimension are zero (K: 128). A tile
// with an entry that is not finite has NaN for V's scales, so every row that meets it shows it.
#pragma once

#include "attention/cpu_kernels.h"

namespace transept {

static constexpr int kEncoderItemRows = 48;  // rows of q and the sums of a task stay in the first-level cache
// Rows of a chunk, which meet a tile together: as many as vectors have registers for, and as a tile of AMX has.
static constexpr int kEncoderVectorRows = 12;
static constexpr int kEncoderTileRows = 16;

struct EncoderTile {
  int64_t v_scales, k, v, bytes;  // K's scales lie at 0
};

static inline EncoderTile encoder_tile(int64_t head_dim) {
  const int64_t depth = (head_dim + 3) / 4 * 4, width = (head_dim + 15) / 16 * 16;
  EncoderTile tile;
  tile.v_scales = kTileKeys * 4;
  tile.k = tile.v_scales + width * 4;
  tile.v = tile.k + depth * kTileKeys;
  // AMX reads sixteen rows of K at a time. What is not K's meets zeros of q, but must be there to be read.
  const int64_t read = tile.k + (depth + 63) / 64 * 64 * kTileKeys;
  tile.bytes = tile.v + width * kTileKeys;
  if (tile.bytes < read) tile.bytes = read;
  return tile;
}

// Of AttentionTask::words: a chunk's integers of q, and what is known of each row's softmax.
static inline int64_t encoder_chunk_bytes(int64_t chunk_rows, int64_t head_dim) {
  return chunk_rows * ((head_dim + 63) / 64 * 64) + (2 * chunk_rows + 2) * 64;
}
static inline int64_t encoder_room(int64_t rows, int64_t head_dim, int64_t chunk_rows) {
  return (rows + chunk_rows - 1) / chunk_rows * encoder_chunk_bytes(chunk_rows, head_dim);
}

namespace avx512_vnni {
// `write`: the keys of one tile; part: the tile's start.
void write_encoder_tile(const KvWrite& write);
// Rows that see all of their keys and whose probabilities are not wanted. Tile i begins at cache + blocks[i] *
// block_stride; sums: [num_rows, 16-fold]; words: encoder_room().
void attend_encoder(const AttentionTask& task);
}  // namespace avx512_vnni
namespace amx {  // over tiles that avx512_vnni's wrote
void attend_encoder(const AttentionTask& task);
}

}  // namespace transept
