// Codes as files of quantised models have them: in rows (compressed-tensors, bitsandbytes, quanto), along columns of
// words (GPTQ), by AWQ's order. Immutable: thread-safe. Borrow the mapped file; own scales and zeros, widened.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quantized/matrix_parts.h"
#include "weights/matrix_source.h"

namespace transept {

// What codes are multiplied with.
struct CodeGroups {
  std::vector<float> scales;          // [n, groups]
  std::vector<int16_t> zeros;         // as many, signed; empty: none
  std::vector<int32_t> input_groups;  // [k]; empty: in order
  std::vector<float> table = {};      // [16]; float4 alone
};

class StoredCodes : public CodedMatrix {
 public:
  void read_scales(int64_t row, std::span<float> scales, std::span<int16_t> zeros) const final;

 protected:
  // REQUIRES: CodedMatrix's; scales, and zeros with format.has_zero, of the size that it says.
  StoredCodes(int64_t n, int64_t k, const WeightFormat& format, StoredBytes codes, CodeGroups groups);

  const StoredBytes& stored() const { return stored_; }

 private:
  StoredBytes stored_;
  std::vector<float> scales_;
  std::vector<int16_t> zeros_;
};

// Each output's codes lie side by side, the first in the lowest bits, without gaps between bytes; rows begin at
// multiples of `row_bytes`.
class RowCodes final : public StoredCodes {
 public:
  // is_offset: stored as 2^(bits - 1) more than they mean; else a signed byte each, whatever format.bits. REQUIRES:
  // row_bytes hold k codes, and `codes` n rows.
  RowCodes(int64_t n, int64_t k, const WeightFormat& format, StoredBytes codes, int64_t row_bytes, bool is_offset,
           CodeGroups groups);

  void read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const override;
  void release_rows(int64_t begin, int64_t count) const override;

 private:
  int64_t row_bytes_;
  bool is_offset_;
};

// bitsandbytes' 4 bits: rows of k / 2 bytes, the first code of a byte in its upper half, places in a table.
class TableRowCodes final : public StoredCodes {
 public:
  // REQUIRES: k is even; groups.table is there.
  TableRowCodes(int64_t n, int64_t k, int32_t group, StoredBytes codes, CodeGroups groups);

  void read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const override;
  void release_rows(int64_t begin, int64_t count) const override;
};

// GPTQ's qweight: [ceil(k bits / 32), n] words; the codes of an output lie along its column, the first in the lowest
// bits, across the borders of words, 2^(bits - 1) more than they mean.
class ColumnCodes final : public StoredCodes {
 public:
  ColumnCodes(int64_t n, int64_t k, const WeightFormat& format, StoredBytes codes, CodeGroups groups);

  void read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const override;
  void release_rows(int64_t begin, int64_t count) const override;
  int64_t rows_at_once() const override { return 16; }  // a line of the cache has so many words
};

// AWQ's gemm: [k, n / 8] words, of which each has the 4-bit codes of 8 outputs of one input, 8 more than they mean.
class AwqCodes final : public StoredCodes {
 public:
  AwqCodes(int64_t n, int64_t k, const WeightFormat& format, StoredBytes codes, CodeGroups groups);

  // Where in a word the code of output `o` lies, in bits.
  static int shift_of(int64_t output);

  void read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const override;
  void release_rows(int64_t begin, int64_t count) const override;
  int64_t rows_at_once() const override { return 64; }  // 8 words
};

// The code of `bits` bits, 1 to 8, that begins at bit `bit` of `bytes`, the lowest bit of a byte first.
int32_t read_bits(std::span<const std::byte> bytes, int64_t bit, int32_t bits);

}  // namespace transept
