#version 450
#extension GL_GOOGLE_include_directive : require
// mean = the sum of x / count. One group.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint n; float count;)
READS(0, float, x)
WRITES(1, float, mean)

void main() {
  float sum = 0;
  for (uint i = lane(); i < n; i += LANES) sum += x(i);
  sum = sum_of_lanes(sum);
  if (lane() == 0) set_mean(0, sum / count);
}
