// Matrices of float8 e4m3 as transformers, vLLM, FBGEMM and ModelOpt write them: L.weight F8_E4M3 [n, k] and its
// scales, L.weight_scale_inv or L.weight_scale, with which codes are multiplied, whatever the name. Scales are one, [n,
// 1], or [ceil(n / B), ceil(k / B)] with weight_block_size. Source: transformers, integrations/finegrained_fp8.py.
#pragma once

#include "quantized/quantization_config.h"
#include "weights/matrix_reader.h"

namespace transept {

class Float8Reader final : public MatrixReader {
 public:
  explicit Float8Reader(const Float8Config& config) : config_(config) {}

  bool has(const WeightMap& weights, std::string_view name) const override;
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                               WeightUse use) const override;

 private:
  Float8Config config_;
};

}  // namespace transept
