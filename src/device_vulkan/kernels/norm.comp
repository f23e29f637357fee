#version 450
#extension GL_GOOGLE_include_directive : require
// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, or without mean and bias (RMS). A row a group. y may be x.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint n; uint x_stride; uint y_stride; float epsilon;)
READS(0, float, x)
READS(1, float, weight)
#ifdef RMS
WRITES(2, float, y)
#else
READS(2, float, bias)
WRITES(3, float, y)
#endif

void main() {
  const uint row = gl_WorkGroupID.x, from = row * x_stride, to = row * y_stride;
#ifdef RMS
  float squares = 0;
  for (uint i = lane(); i < n; i += LANES) squares = fma(x(from + i), x(from + i), squares);
  const float scale = 1.0 / sqrt(sum_of_lanes(squares) / float(n) + epsilon);
  for (uint i = lane(); i < n; i += LANES) set_y(to + i, x(from + i) * scale * weight(i));
#else
  float sum = 0;
  for (uint i = lane(); i < n; i += LANES) sum += x(from + i);
  const float mean = sum_of_lanes(sum) / float(n);
  float squares = 0;
  for (uint i = lane(); i < n; i += LANES) {
    const float d = x(from + i) - mean;
    squares = fma(d, d, squares);
  }
  const float scale = 1.0 / sqrt(sum_of_lanes(squares) / float(n) + epsilon);
  for (uint i = lane(); i < n; i += LANES) set_y(to + i, fma((x(from + i) - mean) * scale, weight(i), bias(i)));
#endif
}
