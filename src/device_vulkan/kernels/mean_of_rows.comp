#version 450
#extension GL_GOOGLE_include_directive : require
// y = the mean of the rows of x. Parts of 128 rows are summed first: long sums stay exact.
#define LANES 128
#include "dialect.glsl"

const uint kRowsASum = 128;

ARGUMENTS(uint rows; uint n; uint x_stride;)
READS(0, float, x)
WRITES(1, float, y)

void main() {
  const uint c = gl_WorkGroupID.x * LANES + lane();
  if (c >= n) return;
  float total = 0;
  for (uint begin = 0; begin < rows; begin += kRowsASum) {
    float part = 0;
    for (uint row = begin; row < min(rows, begin + kRowsASum); ++row) part += x(row * x_stride + c);
    total += part;
  }
  set_y(c, total / float(rows));
}
