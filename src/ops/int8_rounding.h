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
    }
  }

  float inverse = 0, scale = 0;
};

// Adding and taking away 1.5 * 2^23 rounds to the nearest integer, ties to even; no weight is past 127.
inline int32_t int8_code(float weight, float inverse) {
  const float rounded = (weight * inverse + 12582912.0f) - 12582912.0f;
  return static_cast<int32_t>(inverse == 0 ? 0 : rounded);
}

// At most kColumns outputs, a panel, in int8, whose weights lie side by side by input.
template <int64_t kColumns>
class Int8Columns {
 public:
  // weights: [num_inputs, step], of which the first `count` of each input are taken. REQUIRES: count <= kColumns.
  Int8Columns(const float* weights, int64_t step, int64_t num_inputs, int64_t count)
      : weights_(weights), step_(step), count_(count) {
    std::array<uint32_t, kColumns> largest = {};
    for (int64_t t = 0; t < num_inputs; ++t) {
      const Line line = line_of(t);
      for (size_t c = 0; c < line.size(); ++c) largest[c] = std::max(largest[c], magnitude(line[c]));
    }
    for (size_t c = 0; c < largest.size(); ++c) {
      const Int8Rounding rounding(largest[c]);
      inverses_[c] = rounding.inverse;
      scales_[c] = rounding.scale;
    }
  }

  // The codes of inputs [input, input + num_inputs), at most 4: those of an output in one word, the first one lowest.
  std::array<uint32_t, kColumns> round(int64_t input, int64_t num_inputs) {
    std::array<uint32_t, kColumns> words = {};
    for (int64_t i = 0; i < num_inputs; ++i) {
      const Line line = line_of(input + i);
      for (size_t c = 0; c < line.size(); ++c) {
        const int32_t code = int8_code(line[c], inverses_[c]);
        sums_[c] += code;
        words[c] |= (static_cast<uint32_t>(code) & 0xff) << (8 * i);
      }
    }
    return words;
  }

  const std::array<float, kColumns>& scales() const { return scales_; }
  // Of all codes so far.
  const std::array<int32_t, kColumns>& sums() const { return sums_; }

 private:
  using Line = std::array<float, kColumns>;

  // Of a panel's width always, which the compiler unrolls.
  Line line_of(int64_t input) const {
    Line line;
    const float* from = weights_ + input * step_;
    if (count_ == kColumns) {
      std::memcpy(line.data(), from, sizeof line);
    } else {
      line = {};
      std::copy_n(from, count_, line.data());
    }
    return line;
  }

  const float* weights_;
  int64_t step_, count_;
  Line inverses_, scales_;
  std::array<int32_t, kColumns> sums_ = {};
};

}  // namespace transept
