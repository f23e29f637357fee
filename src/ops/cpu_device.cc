#include "ops/cpu_device.h"

#include "ops/cpu_ops.h"

namespace transept {
namespace {

constexpr OpTable kCpuOps = {
    .gemm = cpu_ops::gemm,
    .round_inputs = cpu_ops::round_inputs,
    .layer_norm = cpu_ops::layer_norm,
    .group_norm = cpu_ops::group_norm,
    .rms_norm = cpu_ops::rms_norm,
    .gated_activation = cpu_ops::gated_activation,
    .fill_rope_angles = cpu_ops::fill_rope_angles,
    .apply_rope = cpu_ops::apply_rope,
    .to_time_major = cpu_ops::to_time_major,
    .upload = cpu_ops::upload,
    .fill_zero = cpu_ops::fill_zero,
    .write_rows = cpu_ops::write_rows,
    .add_rows = cpu_ops::add_rows,
    .gather_rows = cpu_ops::gather_rows,
    .look_up_rows = cpu_ops::look_up_rows,
    .add_looked_up_rows = cpu_ops::add_looked_up_rows,
    .clear_missing_rows = cpu_ops::clear_missing_rows,
    .scatter_add_rows = cpu_ops::scatter_add_rows,
    .add_gated = cpu_ops::add_gated,
    .copy_rows_of_kind = cpu_ops::copy_rows_of_kind,
    .write_row_slots = cpu_ops::write_row_slots,
    .read_row_slots = cpu_ops::read_row_slots,
    .add_depthwise_conv = cpu_ops::add_depthwise_conv,
    .add_channel_products = cpu_ops::add_channel_products,
    .softmax_rows = cpu_ops::softmax_rows,
    .mix_channels = cpu_ops::mix_channels,
    .mean_of_rows = cpu_ops::mean_of_rows,
};

}  // namespace

const OpTable& CpuDevice::ops() const { return kCpuOps; }

}  // namespace transept
