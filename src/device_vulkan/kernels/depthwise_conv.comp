#version 450
#extension GL_GOOGLE_include_directive : require
// y = x + bias + the sum over the 3 by 3 places around a row of a map [height, width], with zeros beyond it. weight: [9,
// n], tap by tap. y is not x.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint n; uint height; uint width; uint x_stride; uint y_stride;)
READS(0, float, x)
READS(1, float, weight)
READS(2, float, bias)
WRITES(3, float, y)

void main() {
  const uint c = gl_WorkGroupID.x * LANES + lane(), row = gl_WorkGroupID.y;
  if (c >= n) return;
  float sum = x(row * x_stride + c) + bias(c);
  for (uint tap = 0; tap < 9; ++tap) {
    const int down = int(row / width + tap / 3) - 1, right = int(row % width + tap % 3) - 1;
    if (down < 0 || down >= int(height) || right < 0 || right >= int(width)) continue;
    sum = fma(weight(tap * n + c), x((uint(down) * width + uint(right)) * x_stride + c), sum);
  }
  set_y(row * y_stride + c, sum);
}
