// Matrices of GPTQ, versions 1 and 2 of its files. L is the module; codes of b bits; groups of g inputs. Source:
// AutoGPTQ's and gptqmodel's qlinear pack().
//
//   L.qweight I32 [ceil(k b / 32), n]      codes along k, the first lowest, across the borders of words
//   L.qzeros I32 [k/g, ceil(n b / 32)]     zeros along n; version 1: less 1, modulo 2^b
//   L.scales [k/g, n]
//   L.g_idx I32 [k]                        the group of each input; without desc_act it may be missing
//
// weight = (code - zero) * scale.
#pragma once

#include "quantized/quantization_config.h"
#include "weights/matrix_reader.h"

namespace transept {

class GptqReader final : public MatrixReader {
 public:
  explicit GptqReader(const GptqConfig& config) : config_(config) {}

  bool has(const WeightMap& weights, std::string_view name) const override;
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                               WeightUse use) const override;

 private:
  GptqConfig config_;
};

}  // namespace transept
