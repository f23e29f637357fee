#version 450
#extension GL_GOOGLE_include_directive : require
// out = softmax(scale * q.k + bias) v of one row and head a group: over keys in blocks, by the row's table, or dense
// (block_size 0).
//
// Tiles of 32 keys by position: a lane a key for the scores, a lane a dimension for the values. Every fourth tile is of
// the same 32 lanes, and what the four have is added in order at the end. So the order of sums depends on positions
// alone. A row without keys gives zeros. Of int8 a weight is multiplied with its key's scale first.
//
// With OUT also y = out w^T + bias + residual, and the norm of y: the ops behind it, with the bits of their own kernels.
// A group multiplies its head's dimensions, in whole blocks of inputs (panels.glsl), and puts the sums of blocks into
// `sums`; the last group of a row adds them up and goes on (arrivals as in tail.glsl). The residual is y. REQUIRES of it:
// head_dim is of whole blocks, and all heads of kParts blocks or more.
//
// With ROUND the last group of a row rounds what its heads have given for the next product (round.glsl). REQUIRES: heads
// lie one behind the other.
#define LANES 128
#include "dialect.glsl"

#ifdef OUT
#define MORE_ARGUMENTS uint n; uint y_stride; uint adds; uint norm; uint normed_stride; float epsilon;
#elif defined(ROUND)
#define MORE_ARGUMENTS uint inputs;
#else
#define MORE_ARGUMENTS
#endif
#include "scores.glsl"

const uint kDims = kMostDims / kTile, kTiles = LANES / kTile;

READS(2, KvWord, values)
#ifdef ROUND
READS_WRITES_COHERENT(6, float, out_)
WRITES(7, uint, rounded)
WRITES(8, uint, codes)
#define kArrivalsPlace 9
#include "arrivals.glsl"
#define round_of out_
#define set_codes_of set_codes
#include "round.glsl"
#else
WRITES(6, float, out_)
#endif

#ifdef OUT
READS(7, uint, w)
READS(8, float, out_bias)
READS_WRITES_COHERENT(9, float, y)
READS(10, float, gain)
READS(11, float, shift)
WRITES(12, float, normed)
READS_WRITES_COHERENT(13, float, sums)
#define kArrivalsPlace 14
#include "arrivals.glsl"
#include "panels.glsl"
const uint kNormRows = 1, kLayerNorm = 1, kRmsNorm = 2;  // of `norm`; 0: none
#define is_rms (norm == kRmsNorm)
#define x_of y
#include "norm.glsl"
#endif

shared float weights[LANES];
shared float highest_of_tiles[kTiles], total_of_tiles[kTiles], sums_of_tiles[kTiles][kMostDims];

// Dimension d of a key's value; of int8 in its key's scale.
float value_of(uint table, uint kv_head, uint key, uint d) {
#if KV == 0
  if (block_size == 0) return values((table + key) * v_stride + kv_head * v_head_stride + d);
#endif
  const uint part = part_of(table, kv_head, key), place = key % block_size;
#if KV == 0
  return values(part + v_element(block_size, head_dim, place, d));
#elif KV == 3
  return float(bitfieldExtract(int(values(part + v_word(block_size, head_dim, place, d))), int(place % 4 * 8), 8));
#else
  const uint element = v_element(block_size, head_dim, place, d);
  return element_of_word(values(part + element / 2), element);
#endif
}
float value_scale(uint table, uint kv_head, uint key) {
#if KV == 3
  return uintBitsToFloat(values(part_of(table, kv_head, key) + block_size + key % block_size));
#else
  return 1.0;
#endif
}

// What the head gives for dimension d, once all tiles are there.
float mixed(uint d) {
  float highest = kLowest, total = 0, sum = 0;
  for (uint i = 0; i < kTiles; ++i) highest = higher(highest, highest_of_tiles[i]);
  for (uint i = 0; i < kTiles; ++i) {
    const float kept = is_lowest(highest_of_tiles[i]) ? 0.0 : exp_(highest_of_tiles[i] - highest);
    total = fma(total_of_tiles[i], kept, total);
    sum = fma(sums_of_tiles[i][d], kept, sum);
  }
  return total == 0 ? 0.0 : sum / total;
}

// Puts the row's and head's sums over tiles where mixed() finds them.
void attend(uint row, uint head) {
  const uint kv_head = head / heads_a_kv_head, own = lane() / kTile, place = lane() % kTile;
  const uint table = rows(row * kRowWords), begin = rows(row * kRowWords + 1), end = rows(row * kRowWords + 2);
  fetch_query(row, head);
  float highest = kLowest, total = 0;
  float sums_[kDims];
  for (uint i = 0; i < kDims; ++i) sums_[i] = 0;
  for (uint first = begin / kTile * kTile; first < end; first += LANES) {  // the same for all lanes: it has barriers
    const uint tile = first + own * kTile, key = tile + place;
    const bool is_seen = key >= begin && key < end;
    const float score = is_seen ? score_of(row, head, key) : kLowest;
    const float now = higher(highest, highest_of_tile(score));
    const float weight_ = is_lowest(score) ? 0.0 : exp_(score - now);
    const float kept = is_lowest(highest) ? 0.0 : exp_(highest - now);
    total = fma(total, kept, sum_of_tile(weight_));
    highest = now;
    weights[lane()] = is_seen ? weight_ * value_scale(table, kv_head, key) : 0.0;
    barrier();
    for (uint i = 0; i < kDims; ++i) {
      const uint d = i * kTile + place;
      if (d >= head_dim) continue;
      float sum = sums_[i] * kept;
      for (uint t = max(begin, tile) - tile; t < kTile && tile + t < end; ++t) {
        sum = fma(weights[own * kTile + t], value_of(table, kv_head, tile + t, d), sum);
      }
      sums_[i] = sum;
    }  // the next tile's maximum has a barrier before weights are written again
  }
  if (place == 0) {
    highest_of_tiles[own] = highest;
    total_of_tiles[own] = total;
  }
  for (uint i = 0; i < kDims; ++i) {
    const uint d = i * kTile + place;
    if (d < head_dim) sums_of_tiles[own][d] = sums_[i];
  }
  barrier();
}

#ifdef OUT
uint num_panels() { return (n + kColumns - 1) / kColumns; }
uint sum_place(uint row, uint block, uint panel, uint column) {
  const uint blocks = gl_NumWorkGroups.y * head_dim / kBlock;
  return ((row * blocks + block) * num_panels() + panel) * kColumns + column;
}

// The sums of the head's blocks of inputs, which are in `queries`.
void multiply(uint row, uint head) {
  const uint k_ = gl_NumWorkGroups.y * head_dim, blocks = head_dim / kBlock, column = lane() % kColumns;
  for (uint panel = lane() / kColumns; panel < num_panels(); panel += LANES / kColumns) {
    for (uint block = head * blocks; block < (head + 1) * blocks; ++block) {
      float sum = 0;
      for (uint i = 0; i < kBlock; ++i) {
        const uint t = block * kBlock + i;
        sum = fma(queries[t - head * head_dim], weight(panel, t, column, k_), sum);
      }
      set_sums(sum_place(row, block, panel, column), sum);
    }
  }
}

// As product.comp ends.
void add_up(uint row) {
  const uint k_ = gl_NumWorkGroups.y * head_dim, share = quarter_of(k_), blocks = num_blocks_of(k_);
  for (uint i = lane(); i < n; i += LANES) {
    float parts[kParts];
    for (uint part = 0; part < kParts; ++part) {
      parts[part] = 0;
      for (uint block = part * share; block < min(blocks, (part + 1) * share); ++block) {
        parts[part] += sums(sum_place(row, block, i / kColumns, i % kColumns));
      }
    }
    precise float sum = parts[0] + parts[1];
    sum = sum + parts[2];
    sum = sum + parts[3];
    if ((adds & 1) != 0) sum = sum + out_bias(i);
    if ((adds & 2) != 0) sum = sum + y(row * y_stride + i);
    set_y(row * y_stride + i, sum);
  }
}
#endif

void main() {
  const uint row = gl_WorkGroupID.x, head = gl_WorkGroupID.y;
  attend(row, head);
  for (uint d = lane(); d < head_dim; d += LANES) {
    const float value = mixed(d);
    set_out_(row * out_stride + head * out_head_stride + d, value);
#ifdef OUT
    queries[d] = value;
#endif
  }
#ifdef OUT
  barrier();
  multiply(row, head);
  if (!is_last(row, gl_NumWorkGroups.y)) return;
  add_up(row);
  if (norm == 0) return;
  memoryBarrierBuffer();
  barrier();
  normalize_rows(row, gl_NumWorkGroups.x, n, y_stride, normed_stride, epsilon);
#endif
#ifdef ROUND
  if (is_last(row, gl_NumWorkGroups.y)) round_row(row, row * out_stride, gl_NumWorkGroups.y * head_dim, inputs);
#endif
}
