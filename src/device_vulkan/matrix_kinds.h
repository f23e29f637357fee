// Products that a device's matrix units do at once. Values.
#pragma once

#include <cstdint>
#include <string>

namespace transept {

// [m, k] by [k, n].
struct MatrixTile {
  uint32_t m = 0, n = 0, k = 0;

  bool operator==(const MatrixTile&) const = default;
};

enum class MatrixNumber : uint8_t { kFloat16, kFloat32, kInt8, kInt32, kUint8, kUint32, kOther };

struct MatrixKind {
  MatrixTile tile;
  MatrixNumber a = MatrixNumber::kOther, b = MatrixNumber::kOther, sum = MatrixNumber::kOther;

  bool operator==(const MatrixKind&) const = default;
};

// "float16"; "another type".
const char* matrix_number_name(MatrixNumber number);
// "16x16x16 float16 to float32"; "8x8x8 int8 by uint8 to int32".
std::string matrix_kind_text(const MatrixKind& kind);

}  // namespace transept
