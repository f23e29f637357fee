#version 450
#extension GL_GOOGLE_include_directive : require
// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, with one mean and variance for all. y may be x.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint n; uint x_stride; uint y_stride; float epsilon;)
READS(0, float, x)
READS(1, float, mean)
READS(2, float, variance)
READS(3, float, weight)
READS(4, float, bias)
WRITES(5, float, y)

void main() {
  const uint i = gl_WorkGroupID.x * LANES + lane(), row = gl_WorkGroupID.y;
  if (i >= n) return;
  const float scale = 1.0 / sqrt(variance(0) + epsilon);
  set_y(row * y_stride + i, fma((x(row * x_stride + i) - mean(0)) * scale, weight(i), bias(i)));
}
