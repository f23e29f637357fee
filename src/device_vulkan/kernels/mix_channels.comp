#version 450
#extension GL_GOOGLE_include_directive : require
// y[row][c] = the sum over d of weights[c][d] v[row][first + d], where first is the first channel of c's group of
// `size`. y is not v.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint n; uint size; uint v_stride; uint weights_stride; uint y_stride;)
READS(0, float, v)
READS(1, float, weights)
WRITES(2, float, y)

void main() {
  const uint c = gl_WorkGroupID.x * LANES + lane(), row = gl_WorkGroupID.y;
  if (c >= n) return;
  const uint from = row * v_stride + c / size * size;
  float sum = 0;
  for (uint d = 0; d < size; ++d) sum = fma(weights(c * weights_stride + d), v(from + d), sum);
  set_y(row * y_stride + c, sum);
}
