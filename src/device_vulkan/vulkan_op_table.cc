#include "base/check.h"
#include "device_vulkan/vulkan_ops.h"

namespace transept {
namespace {

void lack(Context& context, std::string_view op) {
  CHECK(context.dry_run, op, ": start-up refuses models that need it");
  vulkan_of(context).set_lack(op);
}

constexpr OpTable kVulkanOps = {
    .gemm = vulkan_ops::gemm,
    .round_inputs = [](Context& context, const TensorView&, const InputQuantization&, const RowStatistics*,
                       const TensorView&) { lack(context, "round_inputs"); },
    .layer_norm = vulkan_ops::layer_norm,
    .group_norm = vulkan_ops::group_norm,
    .rms_norm = vulkan_ops::rms_norm,
    .gated_activation = vulkan_ops::gated_activation,
    .fill_rope_angles = vulkan_ops::fill_rope_angles,
    .apply_rope = vulkan_ops::apply_rope,
    .to_time_major = vulkan_ops::to_time_major,
    .upload = vulkan_ops::upload,
    .fill_zero = vulkan_ops::fill_zero,
    .write_rows = vulkan_ops::write_rows,
    .add_rows = vulkan_ops::add_rows,
    .gather_rows = vulkan_ops::gather_rows,
    .look_up_rows = vulkan_ops::look_up_rows,
    .add_looked_up_rows = vulkan_ops::add_looked_up_rows,
    .clear_missing_rows = vulkan_ops::clear_missing_rows,
    .scatter_add_rows = vulkan_ops::scatter_add_rows,
    .add_gated = vulkan_ops::add_gated,
    .copy_rows_of_kind = vulkan_ops::copy_rows_of_kind,
    .write_row_slots = vulkan_ops::write_row_slots,
    .read_row_slots = vulkan_ops::read_row_slots,
    .add_depthwise_conv = vulkan_ops::add_depthwise_conv,
    .add_channel_products = vulkan_ops::add_channel_products,
    .softmax_rows = vulkan_ops::softmax_rows,
    .mix_channels = vulkan_ops::mix_channels,
    .mean_of_rows = vulkan_ops::mean_of_rows,
    .look_at_scores = vulkan_ops::look_at_scores,
};

}  // namespace

const OpTable& vulkan_op_table() { return kVulkanOps; }

}  // namespace transept
