// For the tests of this folder: matrices of random numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random_values_testing.h"
#include "ops/packed_matrix.h"
#include "tensor/tensor.h"

namespace transept::test_util {

inline std::vector<float> random_floats(int64_t count, uint32_t seed, float scale = 1) {
  return testing::random_normals(count, seed, scale);
}

// Rows of random numbers; in every second one, from the first on, one entry dwarfs the others.
inline std::vector<float> rows_with_outliers(int64_t rows, int64_t stride, uint32_t seed) {
  std::vector<float> values = random_floats(rows * stride, seed);
  for (int64_t i = 0; i < rows * stride; ++i) {
    if (i / stride % 2 != 0) continue;
    float& value = values[static_cast<size_t>(i)];
    value = i % stride == i / stride % 5 ? 2 : value * 0.01f;
  }
  return values;
}

inline PackedMatrix pack(const std::vector<float>& w, int64_t n, int64_t k, PackedFormat format = {}) {
  PackedMatrix packed(n, k, format);
  packed.set_rows(0, n, w);
  return packed;
}

inline TensorView matrix(std::vector<float>& data, int64_t rows, int64_t columns) {
  return TensorView(data.data(), DType::kFloat32, {rows, columns});
}

}  // namespace transept::test_util
