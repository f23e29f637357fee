// A map of half the height and width and twice the columns: each row is a product of four neighbours (Liu et al.: Swin
// Transformer, 2021; transformers' DonutSwinPatchMerging). Immutable after loading, so thread-safe; owned by the model.
#pragma once

#include <cstdint>
#include <string>

#include "layers/linear.h"
#include "layers/norm.h"
#include "layers/window_partition.h"

namespace transept {

class PatchMerging final {
 public:
  // Reads `prefix`.norm, [4 dim] with a bias, and `prefix`.reduction.weight, [2 dim, 4 dim]. Errors: those of
  // Linear::load and Norm::load.
  static StatusOr<PatchMerging> load(WeightMap& weights, const std::string& prefix, int64_t dim,
                                     const PackOptions& packing);

  // Sides are halved and rounded up: places beyond the map are zeros.
  static MapSize merged(const MapSize& map) { return {(map.height + 1) / 2, (map.width + 1) / 2}; }

  // y = reduction(norm([x(0, 0), x(1, 0), x(0, 1), x(1, 1)])), of the places (row, column) of each square. x:
  // [map.num_rows(), dim], y: [merged(map).num_rows(), 2 dim] float32, dense. y may begin where x does: no row is
  // written before it is read.
  void forward(Context& context, const MapSize& map, const TensorView& x, const TensorView& y) const;

 private:
  PatchMerging(Norm norm, Linear reduction) : norm_(std::move(norm)), reduction_(std::move(reduction)) {}

  Norm norm_;
  Linear reduction_;
};

}  // namespace transept
