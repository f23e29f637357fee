// Matrices of AWQ, version "gemm". L is the module; groups of g inputs. Source: AutoAWQ, awq/utils/packing_utils.py.
//
//   L.qweight I32 [k, n/8]      4-bit codes of 8 outputs, from the lowest those of outputs 0 2 4 6 1 3 5 7
//   L.qzeros I32 [k/g, n/8]     zeros, in the same order
//   L.scales [k/g, n]
//
// weight = (code - zero) * scale.
#pragma once

#include "quantized/quantization_config.h"
#include "weights/matrix_reader.h"

namespace transept {

class AwqReader final : public MatrixReader {
 public:
  explicit AwqReader(const AwqConfig& config) : config_(config) {}

  bool has(const WeightMap& weights, std::string_view name) const override;
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                               WeightUse use) const override;

 private:
  AwqConfig config_;
};

}  // namespace transept
