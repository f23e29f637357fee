// Matrices of CTranslate2's models that a tensor of floats is not: int8 codes with a scale for each output, int16 codes
// with one for all, and tables of which the model has one row more than the file, which is zero.
//
// A weight is code / scale, rounded once to float32. code * (1 / scale), which a CodedMatrix would give, has other
// bits, so these are sources of numbers. Rounding an int8 row anew gives its codes again: the largest of them is 127.
// Source: CTranslate2 4.8.5, specs/model_spec.py, _quantize.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "weights/matrix_reader.h"

namespace transept {

// The tensor of a matrix "a.weight" is I8 or I16, of any shape with n first; its scales are the F32 tensor
// "a.weight_scale", [n] or [1].
class Ct2MatrixReader final : public MatrixReader {
 public:
  // longer: matrices, of codes or floats, that are asked for with one row more than their tensors have. Names as the
  // WeightMap spells them.
  explicit Ct2MatrixReader(std::set<std::string, std::less<>> longer) : longer_(std::move(longer)) {}

  bool has(const WeightMap& weights, std::string_view name) const override;
  // Errors: another size; the scales: missing, of another size, or one that is 0 or not finite.
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                               WeightUse use) const override;

 private:
  std::set<std::string, std::less<>> longer_;
};

}  // namespace transept
