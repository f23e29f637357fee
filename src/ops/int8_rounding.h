// How weights become int8 codes with a scale for each output (round_to_int8 of ops/packed_matrix.h), one output or a
// panel's at a time. Pure functions, and a class for one thread that borrows its numbers.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace transept {

// Orders floats without their signs: infinities and NaN are above all others. As integers, of which the compiler takes
// many at once: a maximum of floats has an order.
inline uint32_t magnitude(float weight) { return std::bit_cast<uint32_t>(weight) & 0x7fffffff; }

// How an output whose weights have at most this magnitude is rounded (round_to_int8).
struct Int8Rounding {
  explicit Int8Rounding(uint32_t magnitude) {
    constexpr float kLeast = 1e-30f;  // below it 127 / largest overflows
    const auto largest = std::bit_cast<float>(magnitude);
    if (!std::isfinite(largest)) {
      scale = std::numeric_limits<float>::quiet_NaN();  // a weight that is not a number must show
    } else if (largest > kLeast) {
      inverse = 127 / largest;
      scale = largest / 127;
      mask = ~uint32_t{0};
    }
  }

  float inverse = 0, scale = 0;
  uint32_t mask = 0;  // of the codes: all are 0 where weights have no inverse
};

// A weight times the inverse lies in [-127, 127]. With 1.5 * 2^23 it is a float whose last bit counts ones: the sum is
// rounded to the nearest integer, ties to even, which its last bits are. No branch and no conversion, so the compiler
// takes many weights at once.
inline int32_t int8_code(float weight, float inverse, uint32_t mask) {
  constexpr float kRounder = 12582912.0f;
  const uint32_t bits = std::bit_cast<uint32_t>(weight * inverse + kRounder) - std::bit_cast<uint32_t>(kRounder);
  return static_cast<int32_t>(bits & mask);
}

// At most kColumns outputs, a panel, in int8, whose weights lie side by side by input.
template <int64_t kColumns>
class Int8Columns {
 public:
  static constexpr int64_t kInputs = 4;  // taken together: their codes are a word of an output

  // weights: [num_inputs, step], of which the first `count` of each input are taken. REQUIRES: count <= kColumns.
  Int8Columns(const float* weights, int64_t step, int64_t num_inputs, int64_t count)
      : weights_(weights), step_(step), num_inputs_(num_inputs), count_(count) {
    std::array<uint32_t, kColumns> largest = {};
    for (int64_t t = 0; t < num_inputs; t += kInputs) {
      const auto [a, b, c, d] = lines_from(t);
      for (size_t j = 0; j < largest.size(); ++j) {
        const uint32_t one = std::max(magnitude(a[j]), magnitude(b[j]));
        const uint32_t other = std::max(magnitude(c[j]), magnitude(d[j]));
        largest[j] = std::max(largest[j], std::max(one, other));
      }
    }
    for (size_t j = 0; j < largest.size(); ++j) {
      const Int8Rounding rounding(largest[j]);
      inverses_[j] = rounding.inverse;
      scales_[j] = rounding.scale;
      masks_[j] = rounding.mask;
    }
  }

  // The codes of inputs [input, input + kInputs): those of an output in one word, the first one lowest; 0 behind the
  // last input. REQUIRES: input < num_inputs.
  std::array<uint32_t, kColumns> round(int64_t input) {
    const auto [a, b, c, d] = lines_from(input);
    std::array<uint32_t, kColumns> words;
    for (size_t j = 0; j < words.size(); ++j) {
      const auto code = [&](float weight) { return int8_code(weight, inverses_[j], masks_[j]); };
      const int32_t first = code(a[j]), second = code(b[j]), third = code(c[j]), fourth = code(d[j]);
      sums_[j] += (first + second) + (third + fourth);
      words[j] = (low_byte(first) | low_byte(second) << 8) | (low_byte(third) << 16 | low_byte(fourth) << 24);
    }
    return words;
  }

  const std::array<float, kColumns>& scales() const { return scales_; }
  // Of all codes so far.
  const std::array<int32_t, kColumns>& sums() const { return sums_; }

 private:
  using Line = std::array<float, kColumns>;

  static uint32_t low_byte(int32_t code) { return static_cast<uint32_t>(code) & 0xff; }

  // Of a panel's width always, which the compiler unrolls: what is missing is zero, in lines of this object's.
  std::array<const float*, kInputs> lines_from(int64_t input) {
    std::array<const float*, kInputs> lines;
    for (int64_t i = 0; i < kInputs; ++i) {
      const bool is_there = input + i < num_inputs_;
      const float* from = weights_ + (is_there ? input + i : 0) * step_;
      if (!is_there || count_ < kColumns) {
        Line& padded = padded_[static_cast<size_t>(i)];
        padded = {};
        if (is_there) std::copy_n(from, count_, padded.data());
        from = padded.data();
      }
      lines[static_cast<size_t>(i)] = from;
    }
    return lines;
  }

  const float* weights_;
  int64_t step_, num_inputs_, count_;
  Line inverses_, scales_;
  std::array<uint32_t, kColumns> masks_;
  std::array<int32_t, kColumns> sums_ = {};
  std::array<Line, kInputs> padded_;
};

}  // namespace transept
