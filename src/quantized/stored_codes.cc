#include "quantized/stored_codes.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/little_endian.h"

namespace transept {
namespace {

constexpr int64_t kWordBits = 32;

}  // namespace

int32_t read_bits(std::span<const std::byte> bytes, int64_t bit, int32_t bits) {
  const auto at = static_cast<size_t>(bit / 8);
  const auto shift = static_cast<int32_t>(bit % 8);
  auto value = std::to_integer<uint32_t>(bytes[at]);
  if (shift + bits > 8) value |= std::to_integer<uint32_t>(bytes[at + 1]) << 8;
  return static_cast<int32_t>((value >> shift) & ((1u << bits) - 1));
}

StoredCodes::StoredCodes(int64_t n, int64_t k, const WeightFormat& format, StoredBytes codes, CodeGroups groups)
    : CodedMatrix(n, k, format, std::move(groups.input_groups), std::move(groups.table)),
      stored_(codes),
      scales_(std::move(groups.scales)),
      zeros_(std::move(groups.zeros)) {
  CHECK(std::ssize(scales_) == n * num_groups());
  CHECK(std::ssize(zeros_) == (format.has_zero ? n * num_groups() : 0));
}

void StoredCodes::read_scales(int64_t row, std::span<float> scales, std::span<int16_t> zeros) const {
  const int64_t first = row * num_groups();
  std::copy_n(scales_.begin() + first, scales.size(), scales.begin());
  if (!zeros.empty()) std::copy_n(zeros_.begin() + first, zeros.size(), zeros.begin());
}

RowCodes::RowCodes(int64_t n, int64_t k, const WeightFormat& format, StoredBytes codes, int64_t row_bytes,
                   bool is_offset, CodeGroups groups)
    : StoredCodes(n, k, format, codes, std::move(groups)), row_bytes_(row_bytes), is_offset_(is_offset) {
  CHECK(row_bytes >= (is_offset ? ceil_div(k * format.bits, 8) : k));
  CHECK(std::ssize(codes.bytes) == n * row_bytes);
}

void RowCodes::read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const {
  const std::span<const std::byte> bytes =
      stored().bytes.subspan(static_cast<size_t>(row * row_bytes_), static_cast<size_t>(row_bytes_));
  if (!is_offset_) {
    std::memcpy(codes.data(), bytes.data() + columns.begin, static_cast<size_t>(columns.size()));
    return;
  }
  const int32_t bits = format().bits, offset = 1 << (bits - 1);
  int8_t* to = codes.data();
  for (int64_t j = columns.begin; j < columns.end; ++j) {
    *to++ = static_cast<int8_t>(read_bits(bytes, j * bits, bits) - offset);
  }
}

void RowCodes::release_rows(int64_t begin, int64_t count) const {
  stored().release(static_cast<size_t>(begin * row_bytes_), static_cast<size_t>(count * row_bytes_));
}

TableRowCodes::TableRowCodes(int64_t n, int64_t k, int32_t group, StoredBytes codes, CodeGroups groups)
    : StoredCodes(n, k, float4_format(group), codes, std::move(groups)) {
  CHECK(k % 2 == 0 && std::ssize(codes.bytes) == n * (k / 2));
}

void TableRowCodes::read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const {
  const std::byte* bytes = stored().bytes.data() + row * (k() / 2);
  int8_t* to = codes.data();
  for (int64_t j = columns.begin; j < columns.end; ++j) {
    const auto both = std::to_integer<int32_t>(bytes[j / 2]);
    *to++ = static_cast<int8_t>((j % 2 == 0 ? both >> 4 : both & 15) - 8);
  }
}

void TableRowCodes::release_rows(int64_t begin, int64_t count) const {
  stored().release(static_cast<size_t>(begin * (k() / 2)), static_cast<size_t>(count * (k() / 2)));
}

ColumnCodes::ColumnCodes(int64_t n, int64_t k, const WeightFormat& format, StoredBytes codes, CodeGroups groups)
    : StoredCodes(n, k, format, codes, std::move(groups)) {
  CHECK(std::ssize(codes.bytes) == ceil_div(k * format.bits, kWordBits) * n * int64_t{sizeof(uint32_t)});
}

void ColumnCodes::read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const {
  const int32_t bits = format().bits, offset = 1 << (bits - 1);
  const uint32_t mask = (1u << bits) - 1;
  const auto word = [&](int64_t index) {
    return little_endian<uint32_t>(stored().bytes.data() + (index * n() + row) * int64_t{sizeof(uint32_t)});
  };
  int8_t* to = codes.data();
  int64_t held = -1;
  uint32_t now = 0;
  for (int64_t j = columns.begin; j < columns.end; ++j) {
    const int64_t bit = j * bits, index = bit / kWordBits, shift = bit % kWordBits;
    if (index != held) {
      now = word(index);
      held = index;
    }
    uint32_t value = now >> shift;
    if (shift + bits > kWordBits) value |= word(index + 1) << (kWordBits - shift);
    *to++ = static_cast<int8_t>(static_cast<int32_t>(value & mask) - offset);
  }
}

// Rows share pages: only when all were read may they go.
void ColumnCodes::release_rows(int64_t begin, int64_t count) const {
  if (begin + count == n()) stored().release(0, stored().bytes.size());
}

AwqCodes::AwqCodes(int64_t n, int64_t k, const WeightFormat& format, StoredBytes codes, CodeGroups groups)
    : StoredCodes(n, k, format, codes, std::move(groups)) {
  CHECK(format.bits == 4 && n % 8 == 0 && std::ssize(codes.bytes) == k * n / 2);
}

int AwqCodes::shift_of(int64_t output) {
  const auto place = static_cast<int>(output % 8);
  return 4 * (place % 2 == 0 ? place / 2 : 4 + place / 2);
}

void AwqCodes::read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const {
  const int shift = shift_of(row);
  const int64_t row_words = n() / 8;
  const std::byte* at = stored().bytes.data() + (columns.begin * row_words + row / 8) * int64_t{sizeof(uint32_t)};
  for (int8_t& code : codes) {
    code = static_cast<int8_t>(static_cast<int32_t>((little_endian<uint32_t>(at) >> shift) & 15u) - 8);
    at += row_words * int64_t{sizeof(uint32_t)};
  }
}

void AwqCodes::release_rows(int64_t begin, int64_t count) const {
  if (begin + count == n()) stored().release(0, stored().bytes.size());
}

}  // namespace transept
