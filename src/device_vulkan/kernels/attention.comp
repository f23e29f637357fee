#version 450
#extension GL_GOOGLE_include_directive : require
// out = softmax(scale * q.k + bias) v of one row and head a group: over keys in blocks, by the row's table, or dense
// (block_size 0).
//
// Tiles of 32 keys by position: a lane a key for the scores, a lane a dimension for the values. So the order of sums
// depends on positions alone. A row without keys gives zeros.
#define LANES 32
#include "dialect.glsl"

#define MORE_ARGUMENTS
#include "scores.glsl"

const uint kDims = kMostDims / LANES;

READS(2, float, values)
WRITES(6, float, out_)

shared float weights[LANES];

void main() {
  const uint row = gl_WorkGroupID.x, head = gl_WorkGroupID.y, kv_head = head / heads_a_kv_head;
  const uint table = rows(row * kRowWords), begin = rows(row * kRowWords + 1), end = rows(row * kRowWords + 2);
  const uint part = kv_head * 2 * block_size * head_dim;
  fetch_query(row, head);
  float highest = kLowest, total = 0;
  float sums[kDims];
  for (uint i = 0; i < kDims; ++i) sums[i] = 0;
  for (uint tile = begin / LANES * LANES; tile < end; tile += LANES) {
    const uint key = tile + lane();
    const float score = key >= begin && key < end ? score_of(row, head, key) : kLowest;
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
