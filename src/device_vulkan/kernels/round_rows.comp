#version 450
#extension GL_GOOGLE_include_directive : require
// Rows of x as the integers that products of int8 weights take, to the bit as the processor rounds them
// (ops/int8_kernel.h). A row a group. `inputs` is InputRounding: kUsual, 255 steps between the row's least and largest
// entry; kWide, 127 steps on either side of 0 and a second row for the remainder; kOutliers, the second for rows that lose
// too much by the first.
//
// q: [rows][1 or 2][words], four neighbours in a word, each with the row's zero added, so that it is a byte without sign. A
// second row is there for all rows but of kUsual; it holds nothing but zeros where it is not wanted. codes: [rows] of the
// scale and the zero. A row that is not finite has the scale NaN.
#define LANES 128
#include "dialect.glsl"
#include "division.glsl"

const uint kUsual = 0, kWide = 1;
const float kRestSteps = 254.0;
const float kMostLostSquared = 1e-4, kLeastRange = 1e-30, kLargest = 3.40282347e38;

ARGUMENTS(uint k; uint x_stride; uint inputs;)
READS(0, float, x)
WRITES(1, uint, q)
WRITES(2, uint, codes)

struct Range {
  float low, high;  // low <= 0 <= high
  bool is_finite, is_rough;
};

Range range_of(uint from) {
  Range range;
  float high = 0, low = 0, squares = 0, count = 0;
  uint strange = 0;
  for (uint i = lane(); i < k; i += LANES) {
    const float value = x(from + i);
    if ((floatBitsToUint(value) & 0x7F800000u) == 0x7F800000u) {
      strange = 1;
      continue;
    }
    high = max(high, value);
    low = max(low, -value);
    squares = fma(value, value, squares);
    count += value == 0 ? 0.0 : 1.0;
  }
  range.high = max_of_lanes(high);
  range.low = -max_of_lanes(low);
  range.is_finite = largest_of_lanes(strange) == 0;
  range.is_rough = false;
  if (inputs == kUsual || inputs == kWide) return range;
  squares = sum_of_lanes(squares);
  count = sum_of_lanes(count);
  const float step_ = (range.high - range.low) / 255.0, lost = count / 12.0 * step_ * step_;
  range.is_rough = !(range.is_finite && squares <= kLargest && lost <= kMostLostSquared * squares);
  return range;
}

void main() {
  const uint row = gl_WorkGroupID.x, from = row * x_stride, words = (k + 3) / 4;
  const uint share = inputs == kUsual ? 1 : 2;
  const Range range = range_of(from);
  const bool is_wide = inputs == kWide || range.is_rough;
  precise float width = is_wide ? max(range.high, -range.low) : range.high - range.low;
  const float steps = is_wide ? 127.0 : 255.0;
  const bool is_flat = !range.is_finite || !(width > kLeastRange && width <= kLargest);
  const float inverse = is_flat ? 0.0 : divided(steps, width);
  precise float from_zero = -range.low * inverse;
  const int zero = is_wide ? 128 : is_flat ? 0 : int(roundEven(from_zero));
  for (uint t = lane(); t < words; t += LANES) {
    uint four = 0, rest = 0;
    for (uint i = 0; i < 4; ++i) {
      const uint at = 4 * t + i;
      precise float scaled = is_flat || at >= k ? 0.0 : x(from + at) * inverse;
      const float whole = roundEven(scaled);
      precise float left = (scaled - whole) * kRestSteps;
      four |= uint(clamp(int(whole) + zero, 0, 255)) << (8 * i);
      rest |= uint((is_wide ? int(roundEven(left)) : 0) + zero) << (8 * i);
    }
    set_q(row * share * words + t, four);
    if (share == 2) set_q((row * share + 1) * words + t, rest);
  }
  if (lane() != 0) return;
  const float scale = is_flat ? 0.0 : divided(width, steps);
  set_codes(2 * row, range.is_finite ? floatBitsToUint(scale) : 0x7FC00000u);
  set_codes(2 * row + 1, uint(zero));
}
