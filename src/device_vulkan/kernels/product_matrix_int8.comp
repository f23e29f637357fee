#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix : require
#extension GL_NV_integer_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
// What product_int8.comp computes, with its bits, by matrix units (matrix.glsl): both sides are int8, so inputs are 128
// less than their bytes, and 128 times the weights' sum is added to the exact sums.
// TAIL: as of product.comp.
#define LANES 128
#include "dialect.glsl"
#include "matrix.glsl"

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

// Words of four numbers: [part][row][kFours] of q, behind them [part][column][kFours] of w. Sums lie in the same place:
// [part][row][column].
const uint kFours = kTileInputs / 4, kWeightsAt = kParts * kRows * kFours, kPartWords = kColumns * kFours;
const uint kStagedWords = kWeightsAt + kParts * kPartWords, kSumWords = kParts * kRows * kColumns;
const uint kElements = kRows * kColumns / LANES;  // of a lane
shared uint area[kStagedWords > kSumWords ? kStagedWords : kSumWords];

// Words from `begin` on of each part: of the rows themselves (0), or of what they leave (1).
void stage(uint panel, uint first, uint which, uint words, uint words_of_part, uint begin) {
  for (uint i = lane(); i < kWeightsAt; i += LANES) {
    const uint part = i / (kRows * kFours), r = i / kFours % kRows, t = part * words_of_part + begin + i % kFours;
    area[i] = t < words ? q((min(first + r, rows - 1) * share + which) * words + t) ^ 0x80808080u : 0;
  }
  const uint depth_words = (k + 63) / 64 * 16;
  for (uint i = lane(); i < kParts * kPartWords; i += LANES) {
    const uint part = i / kPartWords, at = i % kPartWords, column = at % kColumns, four = at / kColumns;
    const uint t = part * words_of_part + begin + four;
    area[kWeightsAt + part * kPartWords + column * kFours + four] =
        t < words ? w((panel * depth_words + t) * kColumns + column) : 0;
  }
}

#define Inputs icoopmatNV<8, gl_ScopeSubgroup, kTileRows, kTileInputs>
#define Weights icoopmatNV<8, gl_ScopeSubgroup, kTileInputs, kTileColumns>
#define Sums icoopmatNV<32, gl_ScopeSubgroup, kTileRows, kTileColumns>

// Leaves the sums of all parts in `area`.
void multiply(uint panel, uint first, uint which) {
  const uint words = (k + 3) / 4, words_of_part = (words + kParts * kFours - 1) / (kParts * kFours) * kFours;
  Sums sums[kOwn];
  for (uint i = 0; i < kOwn; ++i) sums[i] = Sums(0);
  for (uint begin = 0; begin < words_of_part; begin += kFours) {
    barrier();  // what was staged, or summed, before has been read
    stage(panel, first, which, words, words_of_part, begin);
    barrier();
    for (uint i = 0; i < kOwn; ++i) {
      const uint unit = unit_of(i), part = unit % kParts, tile = unit / kParts;
      if (unit >= kUnits) break;
      Inputs inputs;
      coopMatLoadNV(inputs, area, part * kRows * kFours, kFours, false);
      Weights weights;
      coopMatLoadNV(weights, area, kWeightsAt + part * kPartWords + tile * kTileColumns * kFours, kFours, true);
      sums[i] = coopMatMulAddNV(inputs, weights, sums[i]);
    }
  }
  barrier();
  for (uint i = 0; i < kOwn; ++i) {
    const uint unit = unit_of(i), part = unit % kParts, tile = unit / kParts;
    if (unit >= kUnits) break;
    coopMatStoreNV(sums[i], area, part * kRows * kColumns + tile * kTileColumns, kColumns, false);
  }
  barrier();
}

void main() {
  const uint panel = gl_WorkGroupID.x, first = gl_WorkGroupID.y * kRows;
  precise float values[kElements];
  for (uint which = 0; which < share; ++which) {
    multiply(panel, first, which);
    for (uint j = 0; j < kElements; ++j) {
      const uint i = j * LANES + lane(), row = min(first + i / kColumns, rows - 1);
      const int sum = int(area[i] + area[kRows * kColumns + i] + area[2 * kRows * kColumns + i] +
                          area[3 * kRows * kColumns + i]);
      const int zero = int(codes(2 * row + 1)) - 128;
      const float value = float(sum - zero * weight_sums(panel * kColumns + i % kColumns));
      values[j] = which == 0 ? value : fma(value, kWideStep, values[j]);
    }
  }
  for (uint j = 0; j < kElements; ++j) {
    const uint i = j * LANES + lane(), row = first + i / kColumns, output_ = panel * kColumns + i % kColumns;
    if (row >= rows || output_ >= n) continue;
    precise float sum = values[j] * uintBitsToFloat(codes(2 * row));
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
