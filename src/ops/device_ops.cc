// The ops that models call: each is its device's.
#include "ops/activation.h"
#include "ops/channels.h"
#include "ops/conv1d.h"
#include "ops/gemm.h"
#include "ops/norm.h"
#include "ops/op_table.h"
#include "ops/rope.h"
#include "ops/round_inputs.h"
#include "ops/rows.h"
#include "ops/score_looks.h"

namespace transept {

void gemm(Context& context, const GemmInput& input, const PackedMatrix& w, const Epilogue& epilogue,
          const TensorView& y) {
  context.device.ops().gemm(context, input, w, epilogue, y);
}

void round_inputs(Context& context, const TensorView& x, const InputQuantization& inputs,
                  const RowStatistics* statistics, const TensorView& y) {
  context.device.ops().round_inputs(context, x, inputs, statistics, y);
}

void layer_norm(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                const TensorView& y) {
  context.device.ops().layer_norm(context, x, weight, bias, epsilon, y);
}

void group_norm(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                const TensorView& y) {
  context.device.ops().group_norm(context, x, weight, bias, epsilon, y);
}

void rms_norm(Context& context, const TensorView& x, const float* weight, float epsilon, const TensorView& y) {
  context.device.ops().rms_norm(context, x, weight, epsilon, y);
}

void gated_activation(Context& context, Activation activation, const TensorView& gate, const TensorView& x,
                      const TensorView& y) {
  context.device.ops().gated_activation(context, activation, gate, x, y);
}

void apply_rope(Context& context, const RopeAngles& angles, const TensorView& x) {
  context.device.ops().apply_rope(context, angles, x);
}

void to_time_major(Context& context, std::span<const float> x, const TensorView& y) {
  context.device.ops().to_time_major(context, x, y);
}

void upload(Context& context, std::span<const float> x, const TensorView& y) {
  context.device.ops().upload(context, x, y);
}

void fill_zero(Context& context, const TensorView& y) { context.device.ops().fill_zero(context, y); }

void write_rows(Context& context, MakeRow make_row, const TensorView& y) {
  context.device.ops().write_rows(context, make_row, y);
}

void add_rows(Context& context, MakeRow make_row, const TensorView& y) {
  context.device.ops().add_rows(context, make_row, y);
}

void gather_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y) {
  context.device.ops().gather_rows(context, x, rows, y);
}

void look_up_rows(Context& context, const TensorView& table, View<int32_t> rows, float scale, const TensorView& y) {
  context.device.ops().look_up_rows(context, table, rows, scale, y);
}

void add_looked_up_rows(Context& context, const TensorView& table, View<int32_t> rows, const TensorView& y) {
  context.device.ops().add_looked_up_rows(context, table, rows, y);
}

void clear_missing_rows(Context& context, View<int32_t> rows, const TensorView& y) {
  context.device.ops().clear_missing_rows(context, rows, y);
}

void scatter_add_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y) {
  context.device.ops().scatter_add_rows(context, x, rows, y);
}

void add_gated(Context& context, const TensorView& x, const float* gate, int64_t gate_size, const TensorView& y) {
  context.device.ops().add_gated(context, x, gate, gate_size, y);
}

void copy_rows_of_kind(Context& context, const TensorView& x, View<uint8_t> kinds, uint8_t kind, const TensorView& y) {
  context.device.ops().copy_rows_of_kind(context, x, kinds, kind, y);
}

void write_row_slots(Context& context, const TensorView& x, View<int64_t> slots, int32_t block_size,
                     const TensorView& cache) {
  context.device.ops().write_row_slots(context, x, slots, block_size, cache);
}

void read_row_slots(Context& context, const TensorView& cache, View<int64_t> slots, int32_t block_size,
                    View<int32_t> rows, const TensorView& y) {
  context.device.ops().read_row_slots(context, cache, slots, block_size, rows, y);
}

void add_depthwise_conv(Context& context, const TensorView& x, int64_t height, int64_t width, const float* weight,
                        const float* bias, const TensorView& y) {
  context.device.ops().add_depthwise_conv(context, x, height, width, weight, bias, y);
}

void add_channel_products(Context& context, const TensorView& q, const TensorView& k, const TensorView& sums) {
  context.device.ops().add_channel_products(context, q, k, sums);
}

void softmax_rows(Context& context, float scale, const TensorView& x) {
  context.device.ops().softmax_rows(context, scale, x);
}

void mix_channels(Context& context, const TensorView& v, const TensorView& weights, const TensorView& y) {
  context.device.ops().mix_channels(context, v, weights, y);
}

void mean_of_rows(Context& context, const TensorView& x, const TensorView& y) {
  context.device.ops().mean_of_rows(context, x, y);
}

void look_at_scores(Context& context, const TensorView& scores, std::span<const ScoreLook> looks,
                    std::span<const uint32_t> edits, int64_t most_listed, const TensorView& found) {
  context.device.ops().look_at_scores(context, scores, looks, edits, most_listed, found);
}

bool looks_at_scores(const Context& context) { return context.device.ops().look_at_scores != nullptr; }

}  // namespace transept
