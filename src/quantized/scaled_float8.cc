#include "quantized/scaled_float8.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {
namespace {

constexpr int kBias = 7, kMantissaBits = 3;

constexpr float value_of(int bits) {
  const int exponent = (bits >> kMantissaBits) & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  float value = static_cast<float>(exponent == 0 ? mantissa : mantissa + 8) / (1 << kMantissaBits);
  for (int i = kBias; i < exponent; ++i) value *= 2;
  for (int i = std::max(exponent, 1); i < kBias; ++i) value /= 2;
  return (bits & 0x80) != 0 ? -value : value;
}

constexpr std::array<float, 256> make_table() {
  std::array<float, 256> table{};
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = value_of(i);
  return table;
}

constexpr std::array<float, 256> kTable = make_table();

}  // namespace

float float8_e4m3_to_float(uint8_t bits) { return kTable[bits]; }

ScaledFloat8::ScaledFloat8(int64_t n, int64_t k, StoredBytes codes, std::vector<float> scales,
                           const Float8Blocks& blocks)
    : MatrixSource(n, k, kFloat8Format),
      codes_(codes),
      scales_(std::move(scales)),
      blocks_(blocks),
      row_scales_(ceil_div(k, blocks.inputs)) {
  CHECK(std::ssize(codes_.bytes) == n * k && std::ssize(scales_) == ceil_div(n, blocks.outputs) * row_scales_);
}

void ScaledFloat8::read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const {
  CHECK(begin >= 0 && count >= 0 && count <= n() - begin && columns.begin >= 0 && columns.end <= k());
  CHECK(std::ssize(out) == count * columns.size());
  float* to = out.data();
  for (int64_t row = begin; row < begin + count; ++row) {
    const std::byte* codes = codes_.bytes.data() + row * k();
    const float* scales = scales_.data() + row / blocks_.outputs * row_scales_;
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      *to++ = kTable[std::to_integer<size_t>(codes[j])] * scales[j / blocks_.inputs];
    }
  }
}

void ScaledFloat8::release_rows(int64_t begin, int64_t count) const {
  codes_.release(static_cast<size_t>(begin * k()), static_cast<size_t>(count * k()));
}

StatusOr<std::unique_ptr<MatrixSource>> open_scaled_float8(MatrixParts& parts, StoredBytes codes, std::string_view name,
                                                           int64_t n, int64_t k, const Float8Blocks& blocks) {
  Float8Blocks actual = blocks;
  std::vector<float> scales;
  if (blocks.inputs > 0) {
    ASSIGN_OR_RETURN(scales, parts.numbers(name, {ceil_div(n, blocks.outputs), ceil_div(k, blocks.inputs)}));
  } else {
    ASSIGN_OR_RETURN(scales, parts.scales(name, n, 1));
    actual = {1, k};
  }
  return std::unique_ptr<MatrixSource>(std::make_unique<ScaledFloat8>(n, k, codes, std::move(scales), actual));
}

}  // namespace transept
