#version 450
#extension GL_GOOGLE_include_directive : require
// y = activation(x w^T + bias) + residual. w: panels of 32 outputs (ops/packed_matrix.h); FORMAT 0: float32, 1: float16, 2:
// bfloat16. A group has one panel and kRows rows. Its lanes are 32 columns times 4 parts of the inputs; each part is
// summed in order, and the parts are: the sums of an element depend on k alone. Rows past the last repeat it and are not
// stored. residual may be y.
#define LANES 128
#include "dialect.glsl"

const uint kColumns = 32, kParts = 4, kRows = 8;

ARGUMENTS(uint rows; uint n; uint k; uint x_stride; uint y_stride; uint residual_stride; uint activation; uint adds;)
READS(0, float, x)
READS(1, uint, w)
READS(2, float, bias)
READS(3, float, residual)
WRITES(4, float, y)

shared float parts[kParts][kRows][kColumns];

// Output `column` of the panel, input t.
float weight(uint panel, uint t, uint column) {
#if FORMAT == 1
  const vec2 pair = unpackHalf2x16(w((panel * k + t) * 16 + column / 2));
  return column % 2 == 0 ? pair.x : pair.y;
#elif FORMAT == 2
  const uint pair = w((panel * ((k + 31) / 32 * 16) + t / 2) * 32 + column);
  return uintBitsToFloat(t % 2 == 0 ? pair << 16 : pair & 0xFFFF0000u);
#else
  return uintBitsToFloat(w((panel * k + t) * 32 + column));
#endif
}

void main() {
  const uint panel = gl_WorkGroupID.x, first = gl_WorkGroupID.y * kRows;
  const uint column = lane() % kColumns, part = lane() / kColumns;
  const uint share = (k + kParts - 1) / kParts, begin = part * share, end = min(k, begin + share);
  uint from[kRows];
  float sums[kRows];
  for (uint r = 0; r < kRows; ++r) {
    from[r] = min(first + r, rows - 1) * x_stride;
    sums[r] = 0;
  }
  for (uint t = begin; t < end; ++t) {
    const float value = weight(panel, t, column);
    for (uint r = 0; r < kRows; ++r) sums[r] = fma(x(from[r] + t), value, sums[r]);
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
}
