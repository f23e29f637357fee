#version 450
#extension GL_GOOGLE_include_directive : require
// y += gate * x; gate_size: n (one a column), 1, or 0: the factor is 1.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint n; uint x_stride; uint y_stride; uint gate_size;)
READS(0, float, x)
READS(1, float, gate)
READS_WRITES(2, float, y)

void main() {
  const uint i = gl_WorkGroupID.x * LANES + lane(), row = gl_WorkGroupID.y;
  if (i >= n) return;
  const uint to = row * y_stride + i;
  const float value = x(row * x_stride + i);
  set_y(to, gate_size == 0 ? y(to) + value : fma(gate(gate_size == 1 ? 0 : i), value, y(to)));
}
