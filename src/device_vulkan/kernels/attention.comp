#version 450
#extension GL_GOOGLE_include_directive : require
// out = softmax(scale * q.k + bias) v of one row and head a group: over keys in blocks, by the row's table, or dense
// (block_size 0). A row has kRowWords words in `rows`: where its table begins (dense: its first key), its first key and
// the end, its position, its place in the sequence, and the sequence.
//
// Tiles of 32 keys by position: a lane a key for the scores, a lane a dimension for the values. So the order of sums
// depends on positions alone. A row without keys gives zeros.
#define LANES 32
#include "dialect.glsl"

const uint kRowWords = 8, kMostDims = 256, kDims = kMostDims / LANES;
const uint kMaterialized = 1, kByDistance = 2, kAlibi = 3;  // BiasKind (attention/bias_kind.h)

ARGUMENTS(uint q_stride; uint q_head_stride; uint out_stride; uint out_head_stride; uint heads_a_kv_head; uint head_dim;
          float scale; uint block_size; uint block_stride; uint num_blocks; uint k_stride; uint k_head_stride;
          uint v_stride; uint v_head_stride; uint bias_kind; uint bias_seq_stride; uint bias_head_stride;
          uint bias_row_stride; uint bias_key_stride; uint max_distance; uint bias_origin;)
READS(0, float, q)
READS(1, float, keys)
READS(2, float, values)
READS(3, uint, rows)
READS(4, uint, tables)
READS(5, float, bias)
WRITES(6, float, out_)

shared float queries[kMostDims];
shared float weights[LANES];

float bias_of(uint seq, uint head, uint row, int position, uint key) {
  if (bias_kind == kMaterialized) {
    return bias(seq * bias_seq_stride + head * bias_head_stride + row * bias_row_stride + key * bias_key_stride);
  }
  const int distance = int(key) - position;
  if (bias_kind == kByDistance) {
    return bias(head * bias_head_stride + uint(int(bias_origin) + clamp(distance, -int(max_distance), int(max_distance))));
  }
  return bias_kind == kAlibi ? -bias(head) * float(abs(distance)) : 0.0;
}

void main() {
  const uint row = gl_WorkGroupID.x, head = gl_WorkGroupID.y, kv_head = head / heads_a_kv_head;
  const uint table = rows(row * kRowWords), begin = rows(row * kRowWords + 1), end = rows(row * kRowWords + 2);
  const int position = int(rows(row * kRowWords + 3));
  const uint place = rows(row * kRowWords + 4), seq = rows(row * kRowWords + 5);
  const uint part = kv_head * 2 * block_size * head_dim;
  for (uint d = lane(); d < head_dim; d += LANES) queries[d] = q(row * q_stride + head * q_head_stride + d);
  barrier();
  float highest = kLowest, total = 0;
  float sums[kDims];
  for (uint i = 0; i < kDims; ++i) sums[i] = 0;
  for (uint tile = begin / LANES * LANES; tile < end; tile += LANES) {
    const uint key = tile + lane();
    float score = kLowest;
    if (key >= begin && key < end) {
      const uint block = block_size == 0 ? 0 : min(tables(table + key / block_size), num_blocks - 1);
      const uint at = block_size == 0 ? (table + key) * k_stride + kv_head * k_head_stride
                                      : block * block_stride + part + key % block_size;
      const uint step_ = block_size == 0 ? 1 : block_size;
      float dot_ = 0;
      for (uint d = 0; d < head_dim; ++d) dot_ = fma(queries[d], keys(at + d * step_), dot_);
      const float added = bias_kind == 0 ? 0.0 : bias_of(seq, head, place, position, key);
      if (!is_lowest(added)) score = fma(dot_, scale, added);
    }
    const float now = max(highest, max_of_lanes(score));
    if (is_lowest(now)) continue;
    const float weight = is_lowest(score) ? 0.0 : exp_(score - now);
    const float kept = is_lowest(highest) ? 0.0 : exp_(highest - now);
    total = fma(total, kept, sum_of_lanes(weight));
    highest = now;
    weights[lane()] = weight;
    barrier();
    for (uint i = 0; i < kDims; ++i) {
      const uint d = i * LANES + lane();
      if (d >= head_dim) continue;
      float sum = sums[i] * kept;
      for (uint t = max(begin, tile) - tile; t < LANES && tile + t < end; ++t) {
        const uint other = tile + t;
        const uint block = block_size == 0 ? 0 : min(tables(table + other / block_size), num_blocks - 1);
        const uint at = block_size == 0 ? (table + other) * v_stride + kv_head * v_head_stride
                                        : block * block_stride + part + (block_size + other % block_size) * head_dim;
        sum = fma(weights[t], values(at + d), sum);
      }
      sums[i] = sum;
    }  // the next tile's maximum has a barrier before weights are written again
  }
  for (uint i = 0; i < kDims; ++i) {
    const uint d = i * LANES + lane();
    if (d < head_dim) set_out_(row * out_stride + head * out_head_stride + d, total == 0 ? 0.0 : sums[i] / total);
  }
}
