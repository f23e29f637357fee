#version 450
#extension GL_GOOGLE_include_directive : require
// y[t][c] = x[c][t]. x: [channels, length]; y: [length, channels].
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint channels; uint length_; uint y_stride;)
READS(0, float, x)
WRITES(1, float, y)

void main() {
  const uint c = gl_WorkGroupID.x * LANES + lane(), t = gl_WorkGroupID.y;
  if (c < channels) set_y(t * y_stride + c, x(c * length_ + t));
}
