// Products, norms, positions, channels.
#include "device_vulkan/vulkan_ops.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "device_vulkan/model_views.h"
#include "device_vulkan/record_channels.h"
#include "device_vulkan/record_int8.h"
#include "ops/cpu_ops.h"
#include "ops/gemm.h"
#include "ops/rope.h"

namespace transept {
namespace {

DeviceFormat format_of(const PackedMatrix& w) {
  if (w.format().weights == kFloat16Format) return DeviceFormat::kFloat16;
  if (w.format().weights == kBFloat16Format) return DeviceFormat::kBFloat16;
  CHECK(w.format().weights == kFloat32Format, "weights of a type that start-up refuses");
  return DeviceFormat::kFloat32;
}

// Step memory of rows that are rounded.
struct RoundedRoom {
  std::span<uint32_t> q, codes;
};

RoundedRoom make_room(Context& context, const TensorView& x, const PackedMatrix& w) {
  const auto rows = static_cast<uint64_t>(x.dim(0)), k = static_cast<uint64_t>(w.k());
  const uint64_t words = DeviceRoundedRows::q_words(rows, k, w.format().inputs);
  return {context.arena.allocate_span<uint32_t>(static_cast<int64_t>(words)),
          context.arena.allocate_span<uint32_t>(static_cast<int64_t>(2 * rows))};
}

// In the timeline's own room where that is large enough, so that the rounding may be fused with what makes the rows.
DeviceRoundedRows rounded(VulkanTimeline& timeline, const RoundedRoom& room, const TensorView& x,
                          const PackedMatrix& w) {
  if (const auto own = timeline.next_rounding_room(room.q.size_bytes(), room.codes.size_bytes()); own.has_value()) {
    return {own->q, own->codes, to_u32(x.dim(0)), to_u32(w.k()), w.format().inputs};
  }
  return {timeline.range(room.q.data(), room.q.size_bytes()),
          timeline.range(room.codes.data(), room.codes.size_bytes()), to_u32(x.dim(0)), to_u32(w.k()),
          w.format().inputs};
}

}  // namespace

// In parts of the output where one range cannot hold the weights. Inputs of int8 are rounded in step memory, once for
// all parts.
void vulkan_ops::gemm(Context& context, const GemmInput& input, const PackedMatrix& w, const Epilogue& epilogue,
                      const TensorView& y) {
  CHECK(input.x.rank == 2 && y.rank == 2 && input.x.dim(1) == w.k() && y.dim(1) == w.n() && y.dim(0) == input.x.dim(0));
  CHECK(input.statistics == nullptr && input.ranks == nullptr, "inputs that ranks divide");
  if (input.x.dim(0) == 0 || w.n() == 0) return;
  const Arena::Scope scope(context.arena);
  const bool is_int8 = w.format().weights == kInt8Format;
  const RoundedRoom room = is_int8 ? make_room(context, input.x, w) : RoundedRoom();
  if (context.dry_run) return vulkan_of(context).note_product(w);
  const DeviceTiling tiling = vulkan_of(context).tiling_of(w);
  if (context.counters != nullptr) ++context.counters->num_matmuls;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    DeviceRoundedRows rows;
    if (is_int8) {
      rows = rounded(timeline, room, input.x, w);
      record_round_rows(timeline.recorder(), matrix_of(timeline, input.x), rows);
    }
    const auto panel_bytes = static_cast<int64_t>(w.panel_bytes());
    const int64_t most = std::max<int64_t>(
        1, static_cast<int64_t>(std::min<uint64_t>(timeline.max_range_bytes(), INT64_MAX)) / panel_bytes);
    for (int64_t panel = 0; panel < w.num_panels(); panel += most) {
      const int64_t panels = std::min(most, w.num_panels() - panel);
      const int64_t begin = panel * kPanelColumns, end = std::min(w.n(), (panel + panels) * kPanelColumns);
      Recorder& recorder = timeline.recorder();
      DeviceEpilogue own{.activation = epilogue.activation};
      if (epilogue.bias != nullptr) own.bias = range_of(timeline, epilogue.bias + begin, end - begin);
      if (!epilogue.residual.empty()) own.residual = matrix_of(timeline, epilogue.residual.columns(begin, end));
      const BufferRange bytes =
          timeline.range(w.panels() + panel * panel_bytes, static_cast<uint64_t>(panels * panel_bytes));
      if (is_int8) {
        const int64_t outputs = panels * kPanelColumns;
        const DeviceInt8Weights weights{bytes,
                                        range_of(timeline, w.scales() + begin, outputs),
                                        timeline.range(w.sums() + begin, static_cast<uint64_t>(outputs) * 4),
                                        to_u32(end - begin),
                                        to_u32(w.k()),
                                        tiling};
        record_product(recorder, rows, weights, own, matrix_of(timeline, y.columns(begin, end)));
        continue;
      }
      const DeviceWeights weights{bytes, to_u32(end - begin), to_u32(w.k()), format_of(w), tiling};
      record_product(recorder, matrix_of(timeline, input.x), weights, own, matrix_of(timeline, y.columns(begin, end)));
    }
  });
}

void vulkan_ops::layer_norm(Context& context, const TensorView& x, const float* weight, const float* bias,
                            float epsilon, const TensorView& y) {
  if (x.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    const int64_t n = x.dim(1);
    record_layer_norm(timeline.recorder(), matrix_of(timeline, x), range_of(timeline, weight, n),
                      range_of(timeline, bias, n), epsilon, matrix_of(timeline, y));
  });
}

void vulkan_ops::group_norm(Context& context, const TensorView& x, const float* weight, const float* bias,
                            float epsilon, const TensorView& y) {
  const Arena::Scope scope(context.arena);
  const auto scratch_size = static_cast<int64_t>(group_norm_scratch(to_u32(x.dim(0))));
  const std::span<float> scratch = context.arena.allocate_span<float>(scratch_size);
  if (x.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    const int64_t n = x.dim(1);
    record_group_norm(timeline.recorder(), matrix_of(timeline, x), range_of(timeline, weight, n),
                      range_of(timeline, bias, n), epsilon, range_of(timeline, scratch.data(), scratch_size),
                      matrix_of(timeline, y));
  });
}

void vulkan_ops::rms_norm(Context& context, const TensorView& x, const float* weight, float epsilon,
                          const TensorView& y) {
  if (x.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    record_rms_norm(timeline.recorder(), matrix_of(timeline, x), range_of(timeline, weight, x.dim(1)), epsilon,
                    matrix_of(timeline, y));
  });
}

void vulkan_ops::gated_activation(Context& context, Activation activation, const TensorView& gate, const TensorView& x,
                                  const TensorView& y) {
  if (x.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    record_gated_activation(timeline.recorder(), activation, matrix_of(timeline, gate), matrix_of(timeline, x),
                            matrix_of(timeline, y));
  });
}

// Cosines and sines are the processor's: their bits are not a driver's affair.
void vulkan_ops::fill_rope_angles(Context& context, const Rope& rope, View<int32_t> positions,
                                  const RopeAngles& angles) {
  if (context.dry_run || angles.cosines.empty()) return;
  VulkanModelDevice& device = vulkan_of(context);
  const auto size = static_cast<size_t>(angles.cosines.num_elements());
  std::vector<float> cosines(size), sines(size);
  RopeAngles here = angles;
  here.cosines.raw = cosines.data();
  here.sines.raw = sines.data();
  Arena none(Arena::kAlignment);
  Context host{device.host(), none};
  cpu_ops::fill_rope_angles(host, rope, positions, here);
  device.memory().copy_in(angles.cosines.raw, cosines.data(), size * sizeof(float));
  device.memory().copy_in(angles.sines.raw, sines.data(), size * sizeof(float));
}

void vulkan_ops::apply_rope(Context& context, const RopeAngles& angles, const TensorView& x) {
  if (x.empty() || angles.cosines.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    record_rope(timeline.recorder(), matrix_of(timeline, angles.cosines), matrix_of(timeline, angles.sines),
                angles.pairs == RopePairs::kHalves, to_u32(x.dim(1)), matrix_of_heads(timeline, x));
  });
}

void vulkan_ops::add_depthwise_conv(Context& context, const TensorView& x, int64_t height, int64_t width,
                                    const float* weight, const float* bias, const TensorView& y) {
  if (x.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    const int64_t n = x.dim(1);
    record_depthwise_conv(timeline.recorder(), matrix_of(timeline, x), to_u32(height), to_u32(width),
                          range_of(timeline, weight, 9 * n), range_of(timeline, bias, n), matrix_of(timeline, y));
  });
}

void vulkan_ops::add_channel_products(Context& context, const TensorView& q, const TensorView& k,
                                      const TensorView& sums) {
  if (q.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    record_channel_products(timeline.recorder(), matrix_of(timeline, q), matrix_of(timeline, k),
                            matrix_of(timeline, sums));
  });
}

void vulkan_ops::softmax_rows(Context& context, float scale, const TensorView& x) {
  if (x.empty()) return;
  record(context,
         [&](VulkanTimeline& timeline) { record_softmax_rows(timeline.recorder(), scale, matrix_of(timeline, x)); });
}

void vulkan_ops::mix_channels(Context& context, const TensorView& v, const TensorView& weights, const TensorView& y) {
  if (v.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    record_mix_channels(timeline.recorder(), matrix_of(timeline, v), matrix_of(timeline, weights),
                        matrix_of(timeline, y));
  });
}

void vulkan_ops::mean_of_rows(Context& context, const TensorView& x, const TensorView& y) {
  if (y.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    record_mean_of_rows(timeline.recorder(), matrix_of(timeline, x), matrix_of(timeline, y));
  });
}

}  // namespace transept
