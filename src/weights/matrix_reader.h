// A way in which checkpoints store matrices that are no tensors of floats: finds them by name and makes sources of
// them. One class a file format; its tensors it asks of the WeightMap. Owned by the WeightMap (set_matrix_reader); used
// on one thread, while loading.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "tensor/input_quantization.h"
#include "weights/matrix_source.h"
#include "weights/weight_view.h"

namespace transept {

class WeightMap;

class MatrixReader {
 public:
  virtual ~MatrixReader() = default;

  // Whether the checkpoint has the matrix `name` in this format: told by WeightMap::has_tensor() of its parts.
  virtual bool has(const WeightMap& weights, std::string_view name) const = 0;

  // The matrix `name` of n outputs of k inputs. Asks `weights` for its tensors, with `use` (a WeightMap
  // gives kPacked: what is read of them is the matrix, see WeightMap::read_matrices). Errors, by tensor: missing;
  // another type or shape; values that the format does not allow. REQUIRES: has(weights, name).
  virtual StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                                       WeightUse use) const = 0;

  // What the format itself rounds the k inputs of the product with this matrix to. Errors: those of a tensor that says
  // it. REQUIRES: has(weights, name).
  virtual StatusOr<InputQuantization> inputs_of(WeightMap& /*weights*/, std::string_view /*name*/,
                                                int64_t /*k*/) const {
    return InputQuantization();
  }
};

}  // namespace transept
