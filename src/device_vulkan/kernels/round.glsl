// A row as the integers that products of int8 weights take, to the bit as the processor rounds it (ops/int8_kernel.h), by
// all lanes of a group. `inputs` is InputRounding: kUsual, 255 steps between the row's least and largest entry; kWide, 127
// steps on either side of 0 and a second row for the remainder; kOutliers, the second for rows that lose too much by the
// first.
//
// q: [rows][1 or 2][words], four neighbours in a word, each with the row's zero added, so that it is a byte without sign. A
// second row is there for all rows but of kUsual; it holds nothing but zeros where it is not wanted. codes: [rows] of the
// scale and the zero. A row that is not finite has the scale NaN.
//
// A kernel defines round_of(uint), which reads an element, and set_rounded(uint, uint) and set_codes_of(uint, uint) of q
// and codes. Other lanes may have written the elements: a barrier and one of memory before are the caller's.
#include "division.glsl"

const uint kUsual = 0, kWide = 1;
const float kRestSteps = 254.0;
const float kMostLostSquared = 1e-4, kLeastRange = 1e-30, kLargest = 3.40282347e38;

struct Range {
  float low, high;  // low <= 0 <= high
  bool is_finite, is_rough;
};

Range range_of(uint from, uint k_, uint inputs_) {
  Range range;
  float high = 0, low = 0, squares = 0, count = 0;
  uint strange = 0;
  for (uint i = lane(); i < k_; i += LANES) {
    const float value = round_of(from + i);
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
  if (inputs_ == kUsual || inputs_ == kWide) return range;
  squares = sum_of_lanes(squares);
  count = sum_of_lanes(count);
  const float step_ = (range.high - range.low) / 255.0, lost = count / 12.0 * step_ * step_;
  range.is_rough = !(range.is_finite && squares <= kLargest && lost <= kMostLostSquared * squares);
  return range;
}

// Row `row` of q and codes: the k_ elements from `from` on.
void round_row(uint row, uint from, uint k_, uint inputs_) {
  const uint words = (k_ + 3) / 4, share_ = inputs_ == kUsual ? 1 : 2;
  const Range range = range_of(from, k_, inputs_);
  const bool is_wide = inputs_ == kWide || range.is_rough;
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
      precise float scaled = is_flat || at >= k_ ? 0.0 : round_of(from + at) * inverse;
      const float whole = roundEven(scaled);
      precise float left = (scaled - whole) * kRestSteps;
      four |= uint(clamp(int(whole) + zero, 0, 255)) << (8 * i);
      rest |= uint((is_wide ? int(roundEven(left)) : 0) + zero) << (8 * i);
    }
    set_rounded(row * share_ * words + t, four);
    if (share_ == 2) set_rounded((row * share_ + 1) * words + t, rest);
  }
  if (lane() != 0) return;
  const float scale = is_flat ? 0.0 : divided(width, steps);
  set_codes_of(2 * row, range.is_finite ? floatBitsToUint(scale) : 0x7FC00000u);
  set_codes_of(2 * row + 1, uint(zero));
}
