#version 450
#extension GL_GOOGLE_include_directive : require
// x = softmax(scale x) of each row, in place. A row a group.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint n; uint x_stride; float scale;)
READS_WRITES(0, float, x)

void main() {
  const uint from = gl_WorkGroupID.x * x_stride;
  float most = kLowest;
  for (uint i = lane(); i < n; i += LANES) most = max(most, x(from + i) * scale);
  most = max_of_lanes(most);
  float sum = 0;
  for (uint i = lane(); i < n; i += LANES) {
    const float value = exp_(x(from + i) * scale - most);
    set_x(from + i, value);
    sum += value;
  }
  sum = sum_of_lanes(sum);
  for (uint i = lane(); i < n; i += LANES) set_x(from + i, x(from + i) / sum);
}
