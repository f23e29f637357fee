// Matrices of bitsandbytes. L is the module. Source: bitsandbytes 0.45 to 0.50, functional.py (QuantState,
// int8_vectorwise_dequant, dequantize_4bit).
//
// int8:
//   L.weight I8 [n, k]; L.SCB F32 [n]; L.weight_format U8 [], 0 (rows) or missing        weight = code * SCB / 127
// nf4, fp4:
//   L.weight of ceil(n k / 2) bytes, whatever its type and shape; the first code of a byte in the upper 4 bits, in
//     row-major order of the whole matrix
//   L.weight.quant_map F32 [16]                                weight = quant_map[code] * absmax[place / blocksize]
//   L.weight.absmax F32 [blocks], or U8 and nested:
//     L.weight.nested_quant_map F32 [256], L.weight.nested_absmax F32 [ceil(blocks / nested_blocksize)]:
//     absmax[i] = nested_quant_map[code i] * nested_absmax[i / nested_blocksize] + nested_offset
//   L.weight.quant_state.bitsandbytes__nf4 (or __fp4) U8: JSON of shape, blocksize, nested_blocksize, nested_offset
#pragma once

#include "weights/matrix_reader.h"

namespace transept {

class BitsandbytesReader final : public MatrixReader {
 public:
  bool has(const WeightMap& weights, std::string_view name) const override;
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                               WeightUse use) const override;
};

}  // namespace transept
