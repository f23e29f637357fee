#version 450
#extension GL_GOOGLE_include_directive : require
// Rotates pairs of x [rows, heads, head_dim] in place; halves: columns c and c + pairs, else 2 c and 2 c + 1.
#define LANES 32
#include "dialect.glsl"

ARGUMENTS(uint pairs; uint halves; uint angle_stride; uint x_stride; uint head_stride;)
READS(0, float, cosines)
READS(1, float, sines)
READS_WRITES(2, float, x)

void main() {
  const uint row = gl_WorkGroupID.x, head = gl_WorkGroupID.y;
  for (uint c = lane(); c < pairs; c += LANES) {
    const float cosine = cosines(row * angle_stride + c), sine = sines(row * angle_stride + c);
    const uint at = row * x_stride + head * head_stride;
    const uint first = at + (halves != 0 ? c : 2 * c), second = at + (halves != 0 ? c + pairs : 2 * c + 1);
    precise const float a = x(first), b = x(second);
    precise const float u = a * cosine - b * sine, v = b * cosine + a * sine;
    set_x(first, u);
    set_x(second, v);
  }
}
