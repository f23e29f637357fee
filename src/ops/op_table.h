// The ops of a device: what models call, by name, through Context::device. The functions of this folder that have these
// names call the device's; their headers say what each computes. Immutable: thread-safe.
//
// Addresses (TensorView, PackedMatrix, const float*) are the device's, lists (View, std::span) the host's. A dry run
// (Context::dry_run) allocates step memory only.
#pragma once

#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "ops/activation_kind.h"
#include "ops/row_statistics.h"
#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

class PackedMatrix;
struct Epilogue;
struct GemmInput;
struct InputQuantization;
struct Rope;
struct RopeAngles;
struct ScoreLook;

// Writes row i of a matrix that the host makes: [n] floats.
using MakeRow = FunctionRef<void(int64_t i, std::span<float> row)>;

struct OpTable {
  // ops/gemm.h
  void (*gemm)(Context& context, const GemmInput& input, const PackedMatrix& w, const Epilogue& epilogue,
               const TensorView& y);
  // ops/round_inputs.h
  void (*round_inputs)(Context& context, const TensorView& x, const InputQuantization& inputs,
                       const RowStatistics* statistics, const TensorView& y);
  // ops/norm.h
  void (*layer_norm)(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                     const TensorView& y);
  void (*group_norm)(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                     const TensorView& y);
  void (*rms_norm)(Context& context, const TensorView& x, const float* weight, float epsilon, const TensorView& y);
  // ops/activation.h
  void (*gated_activation)(Context& context, Activation activation, const TensorView& gate, const TensorView& x,
                           const TensorView& y);
  // ops/rope.h
  void (*fill_rope_angles)(Context& context, const Rope& rope, View<int32_t> positions, const RopeAngles& angles);
  void (*apply_rope)(Context& context, const RopeAngles& angles, const TensorView& x);
  // ops/conv1d.h
  void (*to_time_major)(Context& context, std::span<const float> x, const TensorView& y);
  // ops/rows.h
  void (*upload)(Context& context, std::span<const float> x, const TensorView& y);
  void (*fill_zero)(Context& context, const TensorView& y);
  void (*write_rows)(Context& context, MakeRow make_row, const TensorView& y);
  void (*add_rows)(Context& context, MakeRow make_row, const TensorView& y);
  void (*gather_rows)(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y);
  void (*look_up_rows)(Context& context, const TensorView& table, View<int32_t> rows, float scale, const TensorView& y);
  void (*add_looked_up_rows)(Context& context, const TensorView& table, View<int32_t> rows, const TensorView& y);
  void (*clear_missing_rows)(Context& context, View<int32_t> rows, const TensorView& y);
  void (*scatter_add_rows)(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y);
  void (*add_gated)(Context& context, const TensorView& x, const float* gate, int64_t gate_size, const TensorView& y);
  void (*copy_rows_of_kind)(Context& context, const TensorView& x, View<uint8_t> kinds, uint8_t kind,
                            const TensorView& y);
  void (*write_row_slots)(Context& context, const TensorView& x, View<int64_t> slots, int32_t block_size,
                          const TensorView& cache);
  void (*read_row_slots)(Context& context, const TensorView& cache, View<int64_t> slots, int32_t block_size,
                         View<int32_t> rows, const TensorView& y);
  // ops/channels.h
  void (*add_depthwise_conv)(Context& context, const TensorView& x, int64_t height, int64_t width, const float* weight,
                             const float* bias, const TensorView& y);
  void (*add_channel_products)(Context& context, const TensorView& q, const TensorView& k, const TensorView& sums);
  void (*softmax_rows)(Context& context, float scale, const TensorView& x);
  void (*mix_channels)(Context& context, const TensorView& v, const TensorView& weights, const TensorView& y);
  void (*mean_of_rows)(Context& context, const TensorView& x, const TensorView& y);
  // ops/score_looks.h; null: the device has none.
  void (*look_at_scores)(Context& context, const TensorView& scores, std::span<const ScoreLook> looks,
                         std::span<const uint32_t> edits, int64_t most_listed, const TensorView& found) = nullptr;
};

}  // namespace transept
