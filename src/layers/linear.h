// y = activation(x w^T + bias) + residual, with weights from a checkpoint.
//
// Where the checkpoint itself rounds inputs (tensor/input_quantization.h), they are rounded first, and then multiplied.
// How the weights are stored is the layer's own affair: no other class sees its panels, but for ChosenOutputs, which
// copies some of its outputs. Immutable after loading, so thread-safe; owned by the model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "layers/packing.h"
#include "ops/gemm.h"
#include "tensor/context.h"
#include "tensor/device_floats.h"
#include "weights/weight_map.h"

namespace transept {

// One matrix of the checkpoint: `weight` is [out_features, in_features]; `bias` is [out_features], or "" for none.
struct LinearSource {
  std::string weight;
  std::string bias;
  int64_t out_features = 0;
  // Outputs are so many equal blocks, and Split::kOutputs divides each by itself (Moonshine's [W1 W0]: 2).
  int64_t blocks = 1;
  // > 0: a convolution's. `weight` is [out_features, in_features / kernel, kernel], inputs are channels tap by tap.
  int64_t kernel = 0;
  // With `kernel`: the first so many inputs are none of its, and stay as they are (Mllama's projector, whose other
  // inputs are rows of several layers). `weight` is [out_features, in_features].
  int64_t before_kernel = 0;
  // > 0: a convolution's over patches. `weight` is [out_features, channels, height, width], or with a depth (of frames)
  // [out_features, channels, depth, height, width]; inputs are in that order. With `kernel`, which is the product of
  // height and width then, inputs are channels tap by tap.
  int64_t patch_height = 0, patch_width = 0, patch_depth = 0;
  bool is_transposed = false;  // `weight` is [in_features, out_features] (GPT-2's Conv1D)
};

// One product of all sources, their outputs adjacent in this order: [Q K V], [K V].
struct LinearSpec {
  std::vector<LinearSource> sources;
  int64_t in_features = 0;
  LayerInputs inputs = LayerInputs::kUsual;
  // How the options' ranks divide it. kInputs: one rank alone sums in leaves, too (ops/gemm.h).
  Split split = Split::kNone;
  int64_t unit = 1;  // outputs (kOutputs) or inputs (kInputs) that stay on one rank: a head's
};

class Linear final {
 public:
  // Packs this rank's part straight from the mapped files, on the options' threads; or takes the matrix of a packed
  // folder (load_matrix). kOutputs: of each block of each source the rank's share, with its bias. kInputs: the rank's
  // share of the inputs. Errors: a missing or misshapen tensor, by name; those of load_matrix.
  static StatusOr<Linear> load(WeightMap& weights, const LinearSpec& spec, const PackOptions& packing);

  // x: [m, in_features], y: [m, out_features] float32; see gemm (ops/gemm.h), also for numerics. REQUIRES:
  // `epilogue.bias` is null, as the layer has its own.
  //
  // Ranks that divide the inputs (kInputs) exchange their sums over context.ranks, and y is the whole product on each,
  // to the bit (layers/rank_sums.h). REQUIRES: divides_alike(). Without ranks in the context y is this rank's sum
  // alone, to which the first rank adds the bias; it takes the statistics of the whole rows beside x.
  void forward(Context& context, const GemmInput& x, const Epilogue& epilogue, const TensorView& y) const;

  // y = x w^T + bias in pieces of columns: the thread that computed a piece calls `then` with it. Shapes of y:
  // gemm_by_columns (ops/gemm.h). REQUIRES: the format has no wide inputs.
  void forward_by_columns(Context& context, const TensorView& x, const TensorView& y,
                          FunctionRef<void(const ColumnPiece&)> then) const;

  // What the product sees of x: x itself, or rounded in step memory.
  TensorView seen_inputs(Context& context, const GemmInput& x) const;
  bool rounds_inputs() const { return inputs_.rounds(); }
  // Whether ranks that divide the inputs have whole runs of leaves (ops/gemm.h): else their sums would differ from one
  // rank's.
  bool divides_alike() const { return num_leaves_ % part_.count == 0; }
  // Unimplemented if they have not, by the name of its matrix: with the numbers of ranks that have.
  Status check_division(const WeightMap& weights, const std::string& name) const;

  // Replaces the bias: [out_features], or empty for none (an output layer's bias has its own name and shape). While
  // loading only.
  void set_bias(DeviceFloats bias) { bias_ = std::move(bias); }

  // Of this rank's part.
  int64_t in_features() const { return packed_.k(); }
  int64_t out_features() const;

 private:
  friend class ChosenOutputs;  // copies outputs

  Linear(PackedMatrix packed, DeviceFloats bias, const InputQuantization& inputs, int32_t leaves, const Ranks& part)
      : packed_(std::move(packed)), bias_(std::move(bias)), inputs_(inputs), num_leaves_(leaves), part_(part) {}

  static StatusOr<Linear> load_one(WeightMap& weights, const LinearSpec& spec, const PackOptions& packing,
                                   const InputQuantization& inputs, FunctionRef<StatusOr<MatrixSources>()> open);

  void forward_over_ranks(Context& context, const TensorView& x, const Epilogue& epilogue, const TensorView& y) const;
  int32_t leaves_of_part() const { return divides_alike() ? num_leaves_ / part_.count : 1; }

  PackedMatrix packed_;
  DeviceFloats bias_;  // empty: none
  InputQuantization inputs_;
  int32_t num_leaves_;  // of the whole
  Ranks part_;          // of the inputs
  // Products side by side that round their inputs in different ways, or whose codes mean different things; else empty.
  std::vector<Linear> parts_;
};

}  // namespace transept
