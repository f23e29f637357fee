#version 450
#extension GL_GOOGLE_include_directive : require
// sums[row] = the sum of x[row] (squares 0), or of the squares of x[row] - mean. A row a group.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint n; uint x_stride; uint squares;)
READS(0, float, x)
READS(1, float, mean)
WRITES(2, float, sums)

void main() {
  const uint row = gl_WorkGroupID.x, from = row * x_stride;
  const float center = squares != 0 ? mean(0) : 0.0;
  float sum = 0;
  for (uint i = lane(); i < n; i += LANES) {
    const float d = x(from + i) - center;
    sum = squares != 0 ? fma(d, d, sum) : sum + d;
  }
  sum = sum_of_lanes(sum);
  if (lane() == 0) set_sums(row, sum);
}
