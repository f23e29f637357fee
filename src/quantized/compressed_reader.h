// Matrices of compressed-tensors. L is the module; codes of b bits; groups of g inputs. Source: compressed_tensors
// 0.20, compressors/.
//
//   pack-quantized    L.weight_packed I32 [n, ceil(k b / 32)], codes 2^(b-1) more than they mean, the first lowest
//                     L.weight_scale [n, k/g]; L.weight_shape I64 [2]
//                     asymmetric: L.weight_zero_point I32 [ceil(n b / 32), k/g], packed along n, or I8 [n, k/g]
//                     optional: L.weight_g_idx I32 [k]; -1 in all: none
//   int-quantized     L.weight I8 [n, k], weight_scale, weight_zero_point I8
//   float-quantized   L.weight F8_E4M3 [n, k], weight_scale by tensor, channel or block
//   inputs, static    L.input_scale [1]; asymmetric: L.input_zero_point I8 [1]
#pragma once

#include "quantized/compressed_config.h"
#include "weights/matrix_reader.h"

namespace transept {

class CompressedReader final : public MatrixReader {
 public:
  explicit CompressedReader(CompressedConfig config) : config_(std::move(config)) {}

  bool has(const WeightMap& weights, std::string_view name) const override;
  // Errors: MatrixReader's; a module that the config ignores, or that none of its groups targets.
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                               WeightUse use) const override;
  // Errors: as open(); a group of inputs that does not divide k; a scale or zero that is missing or out of range.
  StatusOr<InputQuantization> inputs_of(WeightMap& weights, std::string_view name, int64_t k) const override;

 private:
  // The group of a matrix that is quantised.
  StatusOr<const CompressedGroup*> group_of(const WeightMap& weights, std::string_view name) const;

  CompressedConfig config_;
};

}  // namespace transept
