#version 450
#extension GL_GOOGLE_include_directive : require
// sums[c][d] += the sum over rows of q[row][c] k[row][first + d], where first is the first channel of c's group of
// `size`. Parts of 128 rows are summed first: long sums stay exact.
#define LANES 128
#include "dialect.glsl"

const uint kRowsASum = 128;

ARGUMENTS(uint rows; uint n; uint size; uint q_stride; uint k_stride; uint sums_stride;)
READS(0, float, q)
READS(1, float, k)
READS_WRITES(2, float, sums)

void main() {
  const uint d = gl_WorkGroupID.x * LANES + lane(), c = gl_WorkGroupID.y;
  if (d >= size) return;
  const uint first = c / size * size;
  float total = sums(c * sums_stride + d);
  for (uint begin = 0; begin < rows; begin += kRowsASum) {
    float part = 0;
    for (uint row = begin; row < min(rows, begin + kRowsASum); ++row) {
      part = fma(q(row * q_stride + c), k(row * k_stride + first + d), part);
    }
    total += part;
  }
  set_sums(c * sums_stride + d, total);
}
