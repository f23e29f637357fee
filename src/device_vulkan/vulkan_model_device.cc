#include "device_vulkan/vulkan_model_device.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "device_vulkan/model_views.h"
#include "ops/conv1d.h"
#include "ops/cpu_ops.h"
#include "ops/gemm.h"
#include "ops/rope.h"
#include "ops/rows.h"

namespace transept {
namespace {

// Records an op, unless this is a dry run.
template <typename F>
void record(Context& context, const F& op) {
  if (!context.dry_run) vulkan_of(context).space().with_timeline(op);
}

DeviceFormat format_of(const PackedMatrix& w) {
  if (w.format().weights == kFloat16Format) return DeviceFormat::kFloat16;
  if (w.format().weights == kBFloat16Format) return DeviceFormat::kBFloat16;
  CHECK(w.format().weights == kFloat32Format, "weights of a type that start-up refuses");
  return DeviceFormat::kFloat32;
}

// In parts of the output where one range cannot hold the weights.
void vulkan_gemm(Context& context, const GemmInput& input, const PackedMatrix& w, const Epilogue& epilogue,
                 const TensorView& y) {
  CHECK(input.x.rank == 2 && y.rank == 2 && input.x.dim(1) == w.k() && y.dim(1) == w.n() && y.dim(0) == input.x.dim(0));
  if (input.x.dim(0) == 0 || w.n() == 0 || context.dry_run) return;
  if (context.counters != nullptr) ++context.counters->num_matmuls;
  record(context, [&](VulkanTimeline& timeline) {
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
      const DeviceWeights weights{
          timeline.range(w.panels() + panel * panel_bytes, static_cast<uint64_t>(panels * panel_bytes)),
          to_u32(end - begin), to_u32(w.k()), format_of(w)};
      record_product(recorder, matrix_of(timeline, input.x), weights, own, matrix_of(timeline, y.columns(begin, end)));
    }
  });
}

void vulkan_layer_norm(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                       const TensorView& y) {
  if (x.empty()) return;
  record(context, [&](VulkanTimeline& timeline) {
    const int64_t n = x.dim(1);
    record_layer_norm(timeline.recorder(), matrix_of(timeline, x), range_of(timeline, weight, n),
                      range_of(timeline, bias, n), epsilon, matrix_of(timeline, y));
  });
}

void vulkan_rms_norm(Context& context, const TensorView& x, const float* weight, float epsilon, const TensorView& y) {
  if (x.empty()) return;
  record(context, [&](VulkanTimeline& timeline) {
    record_rms_norm(timeline.recorder(), matrix_of(timeline, x), range_of(timeline, weight, x.dim(1)), epsilon,
                    matrix_of(timeline, y));
  });
}

void vulkan_gated_activation(Context& context, Activation activation, const TensorView& gate, const TensorView& x,
                             const TensorView& y) {
  if (x.empty()) return;
  record(context, [&](VulkanTimeline& timeline) {
    record_gated_activation(timeline.recorder(), activation, matrix_of(timeline, gate), matrix_of(timeline, x),
                            matrix_of(timeline, y));
  });
}

// Cosines and sines are the processor's: their bits are not a driver's affair.
void vulkan_fill_rope_angles(Context& context, const Rope& rope, View<int32_t> positions, const RopeAngles& angles) {
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

void vulkan_apply_rope(Context& context, const RopeAngles& angles, const TensorView& x) {
  if (x.empty() || angles.cosines.empty()) return;
  record(context, [&](VulkanTimeline& timeline) {
    record_rope(timeline.recorder(), matrix_of(timeline, angles.cosines), matrix_of(timeline, angles.sines),
                angles.pairs == RopePairs::kHalves, to_u32(x.dim(1)), matrix_of_heads(timeline, x));
  });
}

void vulkan_to_time_major(Context& context, std::span<const float> x, const TensorView& y) {
  const Arena::Scope scope(context.arena);
  const std::span<float> there = context.arena.allocate_span<float>(y.num_elements());
  if (context.dry_run || y.empty()) return;
  CHECK(x.size() == there.size());
  vulkan_of(context).memory().copy_in(there.data(), x.data(), x.size_bytes());
  record(context, [&](VulkanTimeline& timeline) {
    record_transpose(timeline.recorder(), range_of(timeline, there.data(), y.num_elements()), matrix_of(timeline, y));
  });
}

void vulkan_upload(Context& context, std::span<const float> x, const TensorView& y) {
  if (context.dry_run || y.empty()) return;
  CHECK(static_cast<int64_t>(x.size()) == y.num_elements() && y.stride[0] == y.dim(1));
  vulkan_of(context).memory().copy_in(y.raw, x.data(), x.size_bytes());
}

void vulkan_fill_zero(Context& context, const TensorView& y) {
  if (context.dry_run || y.empty()) return;
  for (int64_t i = 0; i < y.dim(0); ++i) {
    vulkan_of(context).memory().fill(y.row(i), 0, static_cast<size_t>(y.dim(1)) * sizeof(float));
  }
}

// Rows that the host makes, [y.dim(0), n] dense.
std::vector<float> made_rows(MakeRow make_row, const TensorView& y) {
  const auto n = static_cast<size_t>(y.dim(1));
  std::vector<float> rows(static_cast<size_t>(y.dim(0)) * n);
  for (int64_t i = 0; i < y.dim(0); ++i) make_row(i, std::span(rows).subspan(static_cast<size_t>(i) * n, n));
  return rows;
}

void vulkan_write_rows(Context& context, MakeRow make_row, const TensorView& y) {
  if (context.dry_run || y.empty()) return;
  const std::vector<float> rows = made_rows(make_row, y);
  DeviceMemory& memory = vulkan_of(context).memory();
  if (y.stride[0] == y.dim(1)) return memory.copy_in(y.raw, rows.data(), rows.size() * sizeof(float));
  const auto n = static_cast<size_t>(y.dim(1));
  for (int64_t i = 0; i < y.dim(0); ++i) {
    memory.copy_in(y.row(i), rows.data() + static_cast<size_t>(i) * n, n * sizeof(float));
  }
}

void vulkan_add_rows(Context& context, MakeRow make_row, const TensorView& y) {
  if (context.dry_run || y.empty()) return;
  const std::vector<float> rows = made_rows(make_row, y);
  record(context, [&](VulkanTimeline& timeline) {
    Recorder& recorder = timeline.recorder();
    const BufferRange staged = timeline.stage({std::as_bytes(std::span(rows))})[0];
    record_add(recorder, DeviceMatrix::dense(staged.buffer, to_u32(y.dim(0)), to_u32(y.dim(1)), staged.begin), {},
               matrix_of(timeline, y));
  });
}

void vulkan_gather_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y) {
  if (context.dry_run || y.empty()) return;
  if (x.empty()) return vulkan_fill_zero(context, y);  // every row is none
  CHECK(x.dim(1) == y.dim(1) && static_cast<int64_t>(rows.size()) == y.dim(0));
  record(context, [&](VulkanTimeline& timeline) {
    Recorder& recorder = timeline.recorder();
    if (x.stride[0] == x.dim(1)) {
      const BufferRange list = timeline.stage({std::as_bytes(rows)})[0];
      const DeviceTable table{matrix_of(timeline, x).range(), to_u32(x.dim(0)), to_u32(x.dim(1))};
      return record_gather_rows(recorder, table, list, 1, matrix_of(timeline, y));
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const BufferRange to = range_of(timeline, y.row(static_cast<int64_t>(i)), y.dim(1));
      if (rows[i] == kNoRow) {
        recorder.fill(to, 0);
      } else {
        recorder.copy(range_of(timeline, x.row(rows[i]), x.dim(1)), to);
      }
    }
  });
}

void vulkan_clear_missing_rows(Context& context, View<int32_t> rows, const TensorView& y) {
  if (y.empty()) return;
  record(context, [&](VulkanTimeline& timeline) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] != kNoRow) continue;
      timeline.recorder().fill(range_of(timeline, y.row(static_cast<int64_t>(i)), y.dim(1)), 0);
    }
  });
}

void vulkan_scatter_add_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y) {
  if (x.empty()) return;
  record(context, [&](VulkanTimeline& timeline) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == kNoRow) continue;
      const auto from = static_cast<int64_t>(i);
      record_add(timeline.recorder(), matrix_of(timeline, x.rows(from, from + 1)), {},
                 matrix_of(timeline, y.rows(rows[i], rows[i] + 1)));
    }
  });
}

void vulkan_add_gated(Context& context, const TensorView& x, const float* gate, int64_t gate_size,
                      const TensorView& y) {
  if (x.empty()) return;
  record(context, [&](VulkanTimeline& timeline) {
    record_add(timeline.recorder(), matrix_of(timeline, x),
               gate_size == 0 ? BufferRange{} : range_of(timeline, gate, gate_size), matrix_of(timeline, y));
  });
}

void vulkan_copy_rows_of_kind(Context& context, const TensorView& x, View<uint8_t> kinds, uint8_t kind,
                              const TensorView& y) {
  if (x.empty()) return;
  record(context, [&](VulkanTimeline& timeline) {
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] != kind) continue;
      const auto row = static_cast<int64_t>(i);
      timeline.recorder().copy(range_of(timeline, x.row(row), x.dim(1)), range_of(timeline, y.row(row), y.dim(1)));
    }
  });
}

// Where a slot's row lies in a cache of float32.
float* row_of_slot(const TensorView& cache, int64_t slot, int32_t block_size, int64_t n) {
  CHECK(cache.dtype == DType::kUInt8, "rows of other processes, which are not taken here");
  auto* const block = static_cast<std::byte*>(cache.raw) + slot / block_size * cache.stride[0];
  return reinterpret_cast<float*>(block) + slot % block_size * n;
}

void vulkan_write_row_slots(Context& context, const TensorView& x, View<int64_t> slots, int32_t block_size,
                            const TensorView& cache) {
  if (x.empty()) return;
  record(context, [&](VulkanTimeline& timeline) {
    for (size_t i = 0; i < slots.size(); ++i) {
      timeline.recorder().copy(range_of(timeline, x.row(static_cast<int64_t>(i)), x.dim(1)),
                               range_of(timeline, row_of_slot(cache, slots[i], block_size, x.dim(1)), x.dim(1)));
    }
  });
}

void vulkan_read_row_slots(Context& context, const TensorView& cache, View<int64_t> slots, int32_t block_size,
                           View<int32_t> rows, const TensorView& y) {
  if (y.empty()) return;
  record(context, [&](VulkanTimeline& timeline) {
    for (size_t i = 0; i < slots.size(); ++i) {
      timeline.recorder().copy(range_of(timeline, row_of_slot(cache, slots[i], block_size, y.dim(1)), y.dim(1)),
                               range_of(timeline, y.row(rows[i]), y.dim(1)));
    }
  });
}

void lack(Context& context, std::string_view op) {
  CHECK(context.dry_run, op, ": start-up refuses models that need it");
  vulkan_of(context).set_lack(op);
}

constexpr OpTable kVulkanOps = {
    .gemm = vulkan_gemm,
    .round_inputs = [](Context& context, const TensorView&, const InputQuantization&, const RowStatistics*,
                       const TensorView&) { lack(context, "round_inputs"); },
    .layer_norm = vulkan_layer_norm,
    .group_norm = [](Context& context, const TensorView&, const float*, const float*, float,
                     const TensorView&) { lack(context, "group_norm"); },
    .rms_norm = vulkan_rms_norm,
    .gated_activation = vulkan_gated_activation,
    .fill_rope_angles = vulkan_fill_rope_angles,
    .apply_rope = vulkan_apply_rope,
    .to_time_major = vulkan_to_time_major,
    .upload = vulkan_upload,
    .fill_zero = vulkan_fill_zero,
    .write_rows = vulkan_write_rows,
    .add_rows = vulkan_add_rows,
    .gather_rows = vulkan_gather_rows,
    .clear_missing_rows = vulkan_clear_missing_rows,
    .scatter_add_rows = vulkan_scatter_add_rows,
    .add_gated = vulkan_add_gated,
    .copy_rows_of_kind = vulkan_copy_rows_of_kind,
    .write_row_slots = vulkan_write_row_slots,
    .read_row_slots = vulkan_read_row_slots,
    .add_depthwise_conv = [](Context& context, const TensorView&, int64_t, int64_t, const float*, const float*,
                             const TensorView&) { lack(context, "add_depthwise_conv"); },
    .add_channel_products = [](Context& context, const TensorView&, const TensorView&,
                               const TensorView&) { lack(context, "add_channel_products"); },
    .softmax_rows = [](Context& context, float, const TensorView&) { lack(context, "softmax_rows"); },
    .mix_channels = [](Context& context, const TensorView&, const TensorView&,
                       const TensorView&) { lack(context, "mix_channels"); },
    .mean_of_rows = [](Context& context, const TensorView&, const TensorView&) { lack(context, "mean_of_rows"); },
};

}  // namespace

const OpTable& VulkanModelDevice::ops() const { return kVulkanOps; }

void VulkanModelDevice::set_lack(std::string_view op) {
  if (!lack_.ok()) return;
  lack_ = unimplemented("the model needs ", op, ", which the Vulkan device does not have: give --device cpu");
}

}  // namespace transept
