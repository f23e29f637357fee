#version 450
#extension GL_GOOGLE_include_directive : require
// out = softmax(scale * q.k + bias) itself, of chosen rows and heads, one of each a group. `wanted`: num_wanted rows as
// (row of q, place in out), then heads as (head, index in out). Zeros for keys that the row does not see.
#define LANES 32
#include "dialect.glsl"
#define MORE_ARGUMENTS uint num_wanted; uint out_index_stride; uint num_keys;
#include "scores.glsl"

READS(2, uint, wanted)
WRITES(6, float, out_)

void main() {
  const uint row = wanted(gl_WorkGroupID.x * 2), place = wanted(gl_WorkGroupID.x * 2 + 1);
  const uint head = wanted((num_wanted + gl_WorkGroupID.y) * 2), index = wanted((num_wanted + gl_WorkGroupID.y) * 2 + 1);
  const uint begin = rows(row * kRowWords + 1), end = rows(row * kRowWords + 2);
  fetch_query(row, head);
  float highest = kLowest, total = 0;
  for (uint tile = begin / LANES * LANES; tile < end; tile += LANES) {
    const uint key = tile + lane();
    const float score = key >= begin && key < end ? score_of(row, head, key) : kLowest;
    const float now = higher(highest, highest_of_tile(score));
    if (is_lowest(now)) continue;
    const float kept = is_lowest(highest) ? 0.0 : exp_(highest - now);
    total = fma(total, kept, sum_of_tile(is_lowest(score) ? 0.0 : exp_(score - now)));
    highest = now;
  }
  const uint to = index * out_index_stride + place * out_stride;
  for (uint key = lane(); key < num_keys; key += LANES) {
    const float score = key >= begin && key < end ? score_of(row, head, key) : kLowest;
    set_out_(to + key, is_lowest(score) || total == 0 ? 0.0 : exp_(score - highest) / total);
  }
}
