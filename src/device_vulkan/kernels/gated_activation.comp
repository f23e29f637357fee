#version 450
#extension GL_GOOGLE_include_directive : require
// y = activation(gate) * x. y may be gate or x.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint n; uint gate_stride; uint x_stride; uint y_stride; uint activation;)
READS(0, float, gate)
READS(1, float, x)
WRITES(2, float, y)

void main() {
  const uint i = gl_WorkGroupID.x * LANES + lane(), row = gl_WorkGroupID.y;
  if (i < n) set_y(row * y_stride + i, activate(activation, gate(row * gate_stride + i)) * x(row * x_stride + i));
}
