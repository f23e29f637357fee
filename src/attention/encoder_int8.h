// Encoders' attention over int8 keys and values with AVX512-VNNI: what the cpu backend and the kernel file share
// (ops/kernels.h has the rule that this header obeys).
//
// An encoder's keys serve one input and are written for it alone, so they lie as the products want them: tiles of 64
// keys of one head,
//   scales of K float32 [64], scales of V float32 [width], K uint8 [depth / 4, 64, 4], V int8 [16, width, 4];
//   depth: head_dim rounded up to a multiple of 4; width: to one of 16
// K has a scale for each key and 128 added. V has a scale for each dimension of the tile, which leaves the
// probabilities without one: they need but a byte. Places past the last key and dimension are zero (K: 128). A tile
// with an entry that is not finite has NaN for V's scales, so every row that meets it shows it.
#pragma once

#include "attention/cpu_kernels.h"

namespace transept {

static constexpr int kEncoderItemRows = 48;  // rows of q and the sums of a task stay in the first-level cache
static constexpr int kEncoderChunkRows = 12;

struct EncoderTile {
  int64_t v_scales, k, v, bytes;  // K's scales lie at 0
};

static inline EncoderTile encoder_tile(int64_t head_dim) {
  const int64_t depth = (head_dim + 3) / 4 * 4, width = (head_dim + 15) / 16 * 16;
  EncoderTile tile;
  tile.v_scales = kTileKeys * 4;
  tile.k = tile.v_scales + width * 4;
  tile.v = tile.k + depth * kTileKeys;
  tile.bytes = tile.v + width * kTileKeys;
  return tile;
}

// AttentionTask::words of a task of `rows` rows: q's integers, and what is known of each row's softmax.
static inline int64_t encoder_room(int64_t rows, int64_t head_dim) {
  const int64_t chunks = (rows + kEncoderChunkRows - 1) / kEncoderChunkRows;
  const int64_t depth = (head_dim + 3) / 4 * 4;
  return chunks * ((kEncoderChunkRows * depth + 63) / 64 * 64 + (kEncoderChunkRows + 4) * 64);
}

namespace avx512_vnni {
// `write`: the keys of one tile; part: the tile's start.
void write_encoder_tile(const KvWrite& write);
// Rows that see all of their keys, whose probabilities nobody wants. Tile i begins at cache + blocks[i] * block_stride;
// sums: [num_rows, 16-fold], as encoder_room says.
void attend_encoder(const AttentionTask& task);
}  // namespace avx512_vnni

}  // namespace transept
