#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
// y = activation(x w^T + bias) + residual by matrix units (matrix.glsl): of weights that are float16, or bfloat16 that
// float16 holds by a power of two. Each row of x is scaled by a power of two, so that its largest number is within
// [2^14, 2^15), and taken as two halves, high + low, each a float16: 22 bits of a number. Sums are float32. A row that is
// not finite gives NaN.
//
// `adds`, beside 1, bias, and 2, residual: 4, the high half alone; from bit 8 on the factor of weights, as the exponent's
// bits of a float32.
// TAIL: as of product.comp.
#define LANES 128
#include "dialect.glsl"
#include "matrix.glsl"

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

// Words of two numbers: [half][part][row][kPairs] of x, behind them [part] of w, by FORMAT: 1 [input][column], 2
// [column][input]. Sums lie in the same place: [part][row][column].
const uint kPairs = kTileInputs / 2, kHalfWords = kParts * kRows * kPairs, kWeightsAt = 2 * kHalfWords;
const uint kPartWords = kTileInputs * kColumns / 2, kStagedWords = kWeightsAt + kParts * kPartWords;
const uint kSumWords = kParts * kRows * kColumns;
shared uint area[kStagedWords > kSumWords ? kStagedWords : kSumWords];
shared uint exponents[kRows];  // of a row's scale, as a float32 has it; 0: the row is not finite

float power_of(uint exponent) { return uintBitsToFloat(exponent << 23); }
// The number without the scales of row and weights: in two steps, of which none overflows where the number does not.
float unscaled(float sum, uint row_exponent) {
#if FORMAT == 2
  const int by = 254 - int(row_exponent) - int(adds >> 8);
#else
  const int by = 127 - int(row_exponent);
#endif
  precise float half_way = sum * power_of(uint(127 + by / 2));
  precise float whole = half_way * power_of(uint(127 + by - by / 2));
  return whole;
}

void find_exponents(uint first) {
  const uint lanes = LANES / kRows, r = lane() / lanes, from = min(first + r, rows - 1) * x_stride;
  uint most = 0;
  for (uint t = lane() % lanes; t < k; t += lanes) most = max(most, floatBitsToUint(x(from + t)) & 0x7FFFFFFFu);
  area[lane()] = most;
  barrier();
  if (lane() % lanes == 0) {
    for (uint i = 1; i < lanes; ++i) most = max(most, area[lane() + i]);
    exponents[r] = most >= 0x7F800000u ? 0 : uint(clamp(268 - int(most >> 23), 1, 253));
  }
  barrier();
}

float scaled(uint first, uint r, uint t) {
  if (t >= k || exponents[r] == 0) return 0.0;
  return x(min(first + r, rows - 1) * x_stride + t) * power_of(exponents[r]);
}

// Inputs from `begin` on of each part.
void stage(uint panel, uint first, uint share, uint begin) {
  for (uint i = lane(); i < kHalfWords; i += LANES) {
    const uint part = i / (kRows * kPairs), r = i / kPairs % kRows, t = part * share + begin + i % kPairs * 2;
    const vec2 pair = vec2(scaled(first, r, t), scaled(first, r, t + 1));
    const uint high = packHalf2x16(pair);
    precise vec2 rest = pair - unpackHalf2x16(high);
    area[i] = high;
    area[kHalfWords + i] = packHalf2x16(rest);
  }
  for (uint i = lane(); i < kParts * kPartWords; i += LANES) {
    const uint part = i / kPartWords, at = i % kPartWords;
#if FORMAT == 1
    const uint t = part * share + begin + at / 16;
    area[kWeightsAt + i] = t < k ? w((panel * k + t) * 16 + at % 16) : 0;
#else
    const uint column = at % kColumns, pair = at / kColumns, t = part * share + begin + pair * 2;
    const uint both = t < k ? w((panel * ((k + 31) / 32 * 16) + t / 2) * kColumns + column) : 0;
    const vec2 weights = vec2(uintBitsToFloat(both << 16), uintBitsToFloat(both & 0xFFFF0000u));
    area[kWeightsAt + part * kPartWords + column * kPairs + pair] = packHalf2x16(weights * power_of(adds >> 8));
#endif
  }
}

#define Inputs fcoopmatNV<16, gl_ScopeSubgroup, kTileRows, kTileInputs>
#define Weights fcoopmatNV<16, gl_ScopeSubgroup, kTileInputs, kTileColumns>
#define Sums fcoopmatNV<32, gl_ScopeSubgroup, kTileRows, kTileColumns>

void main() {
  const uint panel = gl_WorkGroupID.x, first = gl_WorkGroupID.y * kRows;
  const uint share = (k + kParts * kTileInputs - 1) / (kParts * kTileInputs) * kTileInputs;
  find_exponents(first);
  Sums sums[kOwn];
  for (uint i = 0; i < kOwn; ++i) sums[i] = Sums(0.0);
  for (uint begin = 0; begin < share; begin += kTileInputs) {
    barrier();  // what was staged before has been read
    stage(panel, first, share, begin);
    barrier();
    for (uint i = 0; i < kOwn; ++i) {
      const uint unit = unit_of(i), part = unit % kParts, tile = unit / kParts;
      if (unit >= kUnits) break;
      Weights weights;
      const uint of_part = kWeightsAt + part * kPartWords;
#if FORMAT == 1
      coopMatLoadNV(weights, area, of_part + tile * kTileColumns / 2, kColumns / 2, false);
#else
      coopMatLoadNV(weights, area, of_part + tile * kTileColumns * kPairs, kPairs, true);
#endif
      Inputs inputs;
      coopMatLoadNV(inputs, area, part * kRows * kPairs, kPairs, false);
      sums[i] = coopMatMulAddNV(inputs, weights, sums[i]);
      if ((adds & 4) == 0) {
        coopMatLoadNV(inputs, area, kHalfWords + part * kRows * kPairs, kPairs, false);
        sums[i] = coopMatMulAddNV(inputs, weights, sums[i]);
      }
    }
  }
  barrier();
  for (uint i = 0; i < kOwn; ++i) {
    const uint unit = unit_of(i), part = unit % kParts, tile = unit / kParts;
    if (unit >= kUnits) break;
    coopMatStoreNV(sums[i], area, part * kRows * kColumns + tile * kTileColumns, kColumns, false);
  }
  barrier();
  for (uint i = lane(); i < kRows * kColumns; i += LANES) {
    const uint r = i / kColumns, row = first + r, output_ = panel * kColumns + i % kColumns;
    if (row >= rows || output_ >= n) continue;
    precise float sum = uintBitsToFloat(area[i]) + uintBitsToFloat(area[kRows * kColumns + i]);
    sum = sum + uintBitsToFloat(area[2 * kRows * kColumns + i]);
    sum = sum + uintBitsToFloat(area[3 * kRows * kColumns + i]);
    sum = unscaled(sum, exponents[r]);
    if (exponents[r] == 0) sum = uintBitsToFloat(0x7FC00000u);
    if ((adds & 1) != 0) sum = sum + bias(output_);
    sum = activate(activation, sum);
    if ((adds & 2) != 0) sum = sum + residual(row * residual_stride + output_);
    set_y(row * y_stride + output_, sum);
  }
#ifdef TAIL
  if (is_last_of_tile()) run_tail(first);
#endif
}
