#version 450
#extension GL_GOOGLE_include_directive : require
// out = softmax(scale * q.k + bias) v of one row and head a group: over keys in blocks, by the row's table, or dense
// (block_size 0).
//
// Tiles of 32 keys by position: a lane a key for the scores, a lane a dimension for the values. So the order of sums
// depends on positions alone. A row without keys gives zeros. Of int8 a weight is multiplied with its key's scale first.
#define LANES 32
#include "dialect.glsl"

#define MORE_ARGUMENTS
#include "scores.glsl"

const uint kDims = kMostDims / LANES;

READS(2, KvWord, values)
WRITES(6, float, out_)

shared float weights[LANES];

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

void main() {
  const uint row = gl_WorkGroupID.x, head = gl_WorkGroupID.y, kv_head = head / heads_a_kv_head;
  const uint table = rows(row * kRowWords), begin = rows(row * kRowWords + 1), end = rows(row * kRowWords + 2);
  fetch_query(row, head);
  float highest = kLowest, total = 0;
  float sums[kDims];
  for (uint i = 0; i < kDims; ++i) sums[i] = 0;
  for (uint tile = begin / LANES * LANES; tile < end; tile += LANES) {
    const uint key = tile + lane();
    const bool is_seen = key >= begin && key < end;
    const float score = is_seen ? score_of(row, head, key) : kLowest;
    const float now = higher(highest, highest_of_lanes(score));
    if (is_lowest(now)) continue;
    const float weight = is_lowest(score) ? 0.0 : exp_(score - now);
    const float kept = is_lowest(highest) ? 0.0 : exp_(highest - now);
    total = fma(total, kept, sum_of_lanes(weight));
    highest = now;
    weights[lane()] = is_seen ? weight * value_scale(table, kv_head, key) : 0.0;
    barrier();
    for (uint i = 0; i < kDims; ++i) {
      const uint d = i * LANES + lane();
      if (d >= head_dim) continue;
      float sum = sums[i] * kept;
      for (uint t = max(begin, tile) - tile; t < LANES && tile + t < end; ++t) {
        sum = fma(weights[t], value_of(table, kv_head, tile + t, d), sum);
      }
      sums[i] = sum;
    }  // the next tile's maximum has a barrier before weights are written again
  }
  for (uint i = 0; i < kDims; ++i) {
    const uint d = i * LANES + lane();
    if (d < head_dim) set_out_(row * out_stride + head * out_head_stride + d, total == 0 ? 0.0 : sums[i] / total);
  }
}
