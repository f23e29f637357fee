// Matrices of optimum-quanto: L.weight._data I8 or F8_E4M3 [n, k], L.weight._scale [n, 1]; weight = code * scale.
// Source: optimum-quanto 0.2, tensor/weights/qbytes.py.
#pragma once

#include "weights/matrix_reader.h"

namespace transept {

class QuantoReader final : public MatrixReader {
 public:
  bool has(const WeightMap& weights, std::string_view name) const override;
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                               WeightUse use) const override;
};

}  // namespace transept
