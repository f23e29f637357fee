#version 450
#extension GL_GOOGLE_include_directive : require
// y = activation(x w^T + bias) + residual. w, and the order of sums: panels.glsl. A group has one panel and kRows rows. Its lanes
// are 32 columns times 4 parts of the inputs. Rows past the last repeat it and are not stored. residual may be y.
//
// With a TAIL: the group that is the last to end of a tile of kRows rows goes on with what the op behind has to do with
// these rows, whose y it alone has all of (tail.glsl). The residual is y then.
#define LANES 128
#include "dialect.glsl"

const uint kRows = 8;

#ifndef TAIL
ARGUMENTS(uint rows; uint n; uint k; uint x_stride; uint y_stride; uint residual_stride; uint activation; uint adds;)
READS(3, float, residual)
WRITES(4, float, y)
#else
#define kYPlace 3
#define kFourth x_stride
#include "tail.glsl"
float residual(uint index) { return y(index); }
#define residual_stride y_stride
#endif
READS(0, float, x)
READS(1, uint, w)
READS(2, float, bias)
#include "panels.glsl"

shared float parts[kParts][kRows][kColumns];

void main() {
  const uint panel = gl_WorkGroupID.x, first = gl_WorkGroupID.y * kRows;
  const uint column = lane() % kColumns, part = lane() / kColumns;
  const uint share = share_of(k), begin = part * share, end = min(k, begin + share);
  uint from[kRows];
  float sums[kRows], blocks[kRows];
  for (uint r = 0; r < kRows; ++r) {
    from[r] = min(first + r, rows - 1) * x_stride;
    sums[r] = 0;
  }
  for (uint block = begin; block < end; block += kBlock) {
    for (uint r = 0; r < kRows; ++r) blocks[r] = 0;
    for (uint t = block; t < min(end, block + kBlock); ++t) {
      const float value = weight(panel, t, column, k);
      for (uint r = 0; r < kRows; ++r) blocks[r] = fma(x(from[r] + t), value, blocks[r]);
    }
    for (uint r = 0; r < kRows; ++r) sums[r] += blocks[r];
  }
  for (uint r = 0; r < kRows; ++r) parts[part][r][column] = sums[r];
  barrier();
  const uint output_ = panel * kColumns + column;
  for (uint r = part; r < kRows; r += kParts) {
    const uint row = first + r;
    if (row >= rows || output_ >= n) continue;
    precise float sum = parts[0][r][column] + parts[1][r][column];
    sum = sum + parts[2][r][column];
    sum = sum + parts[3][r][column];
    if ((adds & 1) != 0) sum = sum + bias(output_);
    sum = activate(activation, sum);
    if ((adds & 2) != 0) sum = sum + residual(row * residual_stride + output_);
    set_y(row * y_stride + output_, sum);
  }
#ifdef TAIL
  if (is_last_of_tile()) run_tail(first);
#endif
}
