#include "ops/nibble_panels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace transept {
namespace {

constexpr int64_t kNibbleColumns = 32;              // = kPanelColumns of packed_matrix.h
constexpr int64_t kCodeBytes = kNibbleColumns / 2;  // of one input
constexpr int64_t kScaleBytes = kNibbleColumns * int64_t{sizeof(float)};
constexpr int64_t kZeroBytes = kNibbleColumns * int64_t{sizeof(int16_t)};
constexpr int64_t kTableBytes = int64_t{kNibbleValues} * int64_t{sizeof(float)};
constexpr int64_t kLeastGroup = 32;

int64_t byte_of(int64_t input, int64_t column) {
  constexpr int64_t kColumnBytes = kNibbleInputs / 2;
  return (input / kNibbleInputs * kNibbleColumns + column) * kColumnBytes + input % kColumnBytes;
}

int shift_of(int64_t input) { return input % kNibbleInputs < kNibbleInputs / 2 ? 0 : 4; }

// Values that lie kNibbleColumns apart, one a group.
template <typename T>
void put_column(std::byte* first, int64_t column, std::span<const T> values) {
  for (size_t g = 0; g < values.size(); ++g) {
    std::memcpy(first + (static_cast<int64_t>(g) * kNibbleColumns + column) * int64_t{sizeof(T)}, &values[g],
                sizeof(T));
  }
}

template <typename T>
void get_column(const std::byte* first, int64_t column, std::span<T> values) {
  for (size_t g = 0; g < values.size(); ++g) {
    std::memcpy(&values[g], first + (static_cast<int64_t>(g) * kNibbleColumns + column) * int64_t{sizeof(T)},
                sizeof(T));
  }
}

}  // namespace

bool nibbles_hold(const WeightFormat& weights, int64_t k) {
  const int64_t group = weights.group == 0 ? k : weights.group;
  return weights.is_nibbles() && k > 0 && group % kLeastGroup == 0 && k % group == 0;
}

NibblePanels NibblePanels::of(const WeightFormat& weights, int64_t k) {
  const int64_t group = weights.group == 0 ? std::max<int64_t>(k, 1) : weights.group;
  return {
      .k = k, .group = group, .num_groups = k / group, .has_zero = weights.has_zero, .has_table = !weights.is_codes()};
}

int64_t NibblePanels::scales_place() const { return k * kCodeBytes; }
int64_t NibblePanels::zeros_place() const { return scales_place() + num_groups * kScaleBytes; }
int64_t NibblePanels::panel_bytes() const { return zeros_place() + (has_zero ? num_groups * kZeroBytes : 0); }
int64_t NibblePanels::input_groups_place(int64_t num_panels) const {
  return table_place(num_panels) + (has_table ? kTableBytes : 0);
}
int64_t NibblePanels::bytes(int64_t num_panels) const {
  return input_groups_place(num_panels) + (has_input_groups ? k * int64_t{sizeof(int32_t)} : 0);
}

void put_nibbles(const NibblePanels& of, std::byte* panel, int64_t column, std::span<const int8_t> codes) {
  CHECK(std::ssize(codes) == of.k);
  for (int64_t t = 0; t < of.k; ++t) {
    const int32_t stored = codes[static_cast<size_t>(t)] + kNibbleOffset;
    DCHECK(stored >= 0 && stored < int32_t{kNibbleValues});
    std::byte& at = panel[byte_of(t, column)];
    at = (at & std::byte{static_cast<unsigned char>(0xF0 >> shift_of(t))}) |
         std::byte{static_cast<unsigned char>((stored & 15) << shift_of(t))};
  }
}

void put_scales(const NibblePanels& of, std::byte* panel, int64_t column, std::span<const float> scales,
                std::span<const int16_t> zeros) {
  CHECK(std::ssize(scales) == of.num_groups && zeros.size() == (of.has_zero ? scales.size() : 0));
  put_column(panel + of.scales_place(), column, scales);
  put_column(panel + of.zeros_place(), column, zeros);
}

void get_nibbles(const NibblePanels& of, const std::byte* panel, int64_t column, int8_t* codes) {
  for (int64_t t = 0; t < of.k; ++t) {
    const int32_t stored = std::to_integer<int32_t>(panel[byte_of(t, column)] >> shift_of(t)) & 15;
    codes[t] = static_cast<int8_t>(stored - kNibbleOffset);
  }
}

void get_scales(const NibblePanels& of, const std::byte* panel, int64_t column, std::span<float> scales,
                std::span<int16_t> zeros) {
  CHECK(std::ssize(scales) == of.num_groups && zeros.size() == (of.has_zero ? scales.size() : 0));
  get_column(panel + of.scales_place(), column, scales);
  get_column(panel + of.zeros_place(), column, zeros);
}

void copy_nibbles(const NibblePanels& of, const std::byte* from, int64_t from_column, std::byte* to,
                  int64_t to_column) {
  constexpr int64_t kBytes = kNibbleInputs / 2;
  for (int64_t t = 0; t < of.k; t += kNibbleInputs) {
    std::memcpy(to + byte_of(t, to_column), from + byte_of(t, from_column), kBytes);
  }
  const auto copy = [&]<typename T>(int64_t place, T) {
    for (int64_t g = 0; g < of.num_groups; ++g) {
      const auto at = [&](int64_t column) { return place + (g * kNibbleColumns + column) * int64_t{sizeof(T)}; };
      std::memcpy(to + at(to_column), from + at(from_column), sizeof(T));
    }
  };
  copy(of.scales_place(), float{});
  if (of.has_zero) copy(of.zeros_place(), int16_t{});
}

std::span<const float> integer_table() {
  alignas(64) static constexpr std::array<float, kNibbleValues> kTable = {-8, -7, -6, -5, -4, -3, -2, -1,
                                                                          0,  1,  2,  3,  4,  5,  6,  7};
  return kTable;
}

namespace {

// The codes at one scale, and their squared error in units of it.
float round_at(std::span<const float> weights, float inverse, std::span<int8_t> codes) {
  float error = 0;
  for (size_t t = 0; t < weights.size(); ++t) {
    const float scaled = weights[t] * inverse;
    // Adding and taking away 1.5 * 2^23 rounds to the nearest integer, ties to even.
    const float rounded = (std::clamp(scaled, -8.0f, 7.0f) + 12582912.0f) - 12582912.0f;
    codes[t] = static_cast<int8_t>(static_cast<int32_t>(rounded));
    error += (scaled - rounded) * (scaled - rounded);
  }
  return error;
}

}  // namespace

float round_to_int4(std::span<const float> weights, std::span<int8_t> codes) {
  CHECK(weights.size() == codes.size());
  // The weight of largest magnitude becomes so many steps of -1: past -8 it is cut there, and the others are finer.
  constexpr float kBorders[] = {-7, -8, -8.5f, -9, -9.5f, -10};
  float largest = 0, not_finite = 0;
  for (const float weight : weights) {
    if (std::abs(weight) > std::abs(largest)) largest = weight;
    not_finite += weight * 0;
  }
  std::ranges::fill(codes, int8_t{0});
  constexpr float kLeast = 1e-30f;  // below it a step's inverse overflows
  if (not_finite != 0 || !(not_finite == 0)) return std::nanf("");
  if (std::abs(largest) <= kLeast) return 0;
  float best = 0, least = HUGE_VALF;
  for (const float border : kBorders) {
    const float scale = largest / border, error = round_at(weights, 1 / scale, codes) * scale * scale;
    if (error < least) least = error, best = scale;
  }
  round_at(weights, 1 / best, codes);
  return best;
}

}  // namespace transept
