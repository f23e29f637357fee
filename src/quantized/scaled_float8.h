// Matrices of float8 e4m3 with scales: weight = code * scale, in float32. Immutable: thread-safe. Borrow the mapped
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "quantized/matrix_parts.h"
#include "weights/matrix_source.h"

namespace transept {

// Outputs and inputs that share a scale; 0: by tensor or channel, as the scales' shape says.
struct Float8Blocks {
  int64_t outputs = 0, inputs = 0;
};

// e4m3 as the OCP's "8-bit Floating Point Specification" has it: no infinities, NaN is 0x7F and 0xFF.
float float8_e4m3_to_float(uint8_t bits);

class ScaledFloat8 final : public MatrixSource {
 public:
  // scales: [ceil(n / blocks.outputs), ceil(k / blocks.inputs)]. REQUIRES: blocks of at least 1; `codes` are n k bytes.
  ScaledFloat8(int64_t n, int64_t k, StoredBytes codes, std::vector<float> scales, const Float8Blocks& blocks);

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const override;
  void release_rows(int64_t begin, int64_t count) const override;

 private:
  StoredBytes codes_;
  std::vector<float> scales_;
  Float8Blocks blocks_;
  int64_t row_scales_;
};

// The matrix of `codes`, with the scales `name`. Errors: those of MatrixParts.
StatusOr<std::unique_ptr<MatrixSource>> open_scaled_float8(MatrixParts& parts, StoredBytes codes, std::string_view name,
                                                           int64_t n, int64_t k, const Float8Blocks& blocks);

}  // namespace transept
