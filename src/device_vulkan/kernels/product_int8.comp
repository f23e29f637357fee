#version 450
#extension GL_GOOGLE_include_directive : require
// y = activation(x w^T + bias) + residual of rows that round_rows.comp has rounded and int8 panels of 32 outputs
// (ops/packed_matrix.h). A group has one panel and kRows rows; its lanes are 32 columns times 4 parts of the inputs.
// Sums are exact integers in any order; what is left is done for each element by itself, in the processor's order
// (ops/int8_kernel.h). Rows past the last repeat it and are not stored. residual may be y.
// TAIL: as of product.comp.
#define LANES 128
#include "dialect.glsl"

const uint kColumns = 32, kParts = 4, kRows = 8, kOwn = kRows / kParts;
const float kWideStep = 1.0 / 254.0;

#ifndef TAIL
ARGUMENTS(uint rows; uint n; uint k; uint share; uint y_stride; uint residual_stride; uint activation; uint adds;)
READS(6, float, residual)
WRITES(7, float, y)
#else
#define kYPlace 6
#define kFourth share
#include "tail.glsl"
float residual(uint index) { return y(index); }
#define residual_stride y_stride
#endif
READS(0, uint, q)
READS(1, uint, codes)
READS(2, uint, w)
READS(3, float, scales)
READS(4, int, weight_sums)
READS(5, float, bias)

shared int parts[kParts][kRows][kColumns];

// What this lane's part of the inputs adds to each row: of the rows themselves, or of what they leave.
void add_part(uint first, uint which, uint panel, uint column, uint part) {
  const uint words = (k + 3) / 4, depth_words = (k + 63) / 64 * 16;
  const uint size = (words + kParts - 1) / kParts, begin = part * size, end = min(words, begin + size);
  uint from[kRows];
  int sums[kRows];
  for (uint r = 0; r < kRows; ++r) {
    from[r] = (min(first + r, rows - 1) * share + which) * words;
    sums[r] = 0;
  }
  for (uint t = begin; t < end; ++t) {
    const int four = int(w((panel * depth_words + t) * kColumns + column));
    const int a = bitfieldExtract(four, 0, 8), b = bitfieldExtract(four, 8, 8), c = bitfieldExtract(four, 16, 8),
              d = bitfieldExtract(four, 24, 8);
    for (uint r = 0; r < kRows; ++r) {
      const uint input_ = q(from[r] + t);
      sums[r] += int(input_ & 255u) * a + int(input_ >> 8 & 255u) * b + int(input_ >> 16 & 255u) * c + int(input_ >> 24) * d;
    }
  }
  for (uint r = 0; r < kRows; ++r) parts[part][r][column] = sums[r];
}

void main() {
  const uint panel = gl_WorkGroupID.x, first = gl_WorkGroupID.y * kRows;
  const uint column = lane() % kColumns, part = lane() / kColumns, output_ = panel * kColumns + column;
  precise float values[kOwn];
  for (uint which = 0; which < share; ++which) {
    barrier();  // the sums before have been read
    add_part(first, which, panel, column, part);
    barrier();
    for (uint i = 0; i < kOwn; ++i) {
      const uint r = i * kParts + part, row = min(first + r, rows - 1);
      const int sum = parts[0][r][column] + parts[1][r][column] + parts[2][r][column] + parts[3][r][column];
      const float value = float(sum - int(codes(2 * row + 1)) * weight_sums(output_));
      values[i] = which == 0 ? value : fma(value, kWideStep, values[i]);
    }
  }
  for (uint i = 0; i < kOwn; ++i) {
    const uint row = first + i * kParts + part;
    if (row >= rows || output_ >= n) continue;
    precise float sum = values[i] * uintBitsToFloat(codes(2 * row));
    sum = sum * scales(output_);
    if ((adds & 1) != 0) sum = sum + bias(output_);
    sum = activate(activation, sum);
    if ((adds & 2) != 0) sum = sum + residual(row * residual_stride + output_);
    set_y(row * y_stride + output_, sum);
  }
#ifdef TAIL
  if (is_last_of_tile()) run_tail(first);
#endif
}
