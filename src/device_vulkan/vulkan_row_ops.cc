// What models do to rows between products (ops/rows.h, ops/conv1d.h).
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/check.h"
#include "device_vulkan/model_views.h"
#include "device_vulkan/vulkan_ops.h"
#include "ops/rows.h"
#include "ops/score_looks.h"

namespace transept {
namespace {

// Calls use(recorder, staged, some) for rows that the host makes, some of y after others: `staged` has them, dense.
template <typename F>
void stage_made_rows(VulkanTimeline& timeline, MakeRow make_row, const TensorView& y, const F& use) {
  constexpr int64_t kMostBytes = 4 << 20;
  const auto row_bytes = static_cast<int64_t>(y.dim(1)) * static_cast<int64_t>(sizeof(float));
  const int64_t most = std::max<int64_t>(1, kMostBytes / row_bytes);
  std::vector<float> row(static_cast<size_t>(y.dim(1)));  // what is made may be read, which staged memory is slow at
  for (int64_t begin = 0; begin < y.dim(0); begin += most) {
    const int64_t end = std::min(y.dim(0), begin + most);
    Recorder& recorder = timeline.recorder();
    const VulkanTimeline::StagedRoom room = timeline.stage_room(static_cast<uint64_t>((end - begin) * row_bytes));
    for (int64_t i = begin; i < end; ++i) {
      make_row(i, row);
      if (room.host != nullptr)
        std::memcpy(room.host + (i - begin) * row_bytes, row.data(), row.size() * sizeof(float));
    }
    use(recorder, room.range, y.rows(begin, end));
  }
}

DeviceTable table_of(const VulkanTimeline& timeline, const TensorView& table) {
  CHECK(table.rank == 2 && table.stride[0] == table.dim(1) && table.stride[1] == 1);
  const DeviceFormat format = table.dtype == DType::kFloat16    ? DeviceFormat::kFloat16
                              : table.dtype == DType::kBFloat16 ? DeviceFormat::kBFloat16
                                                                : DeviceFormat::kFloat32;
  const auto bytes = static_cast<uint64_t>(table.num_elements()) * dtype_bytes(table.dtype);
  return {timeline.range(table.raw, (bytes + 3) / 4 * 4), to_u32(table.dim(0)), to_u32(table.dim(1)), format};
}

// Where a slot's row lies in a cache of float32.
float* row_of_slot(const TensorView& cache, int64_t slot, int32_t block_size, int64_t n) {
  CHECK(cache.dtype == DType::kUInt8, "rows of other processes, which are not taken here");
  auto* const block = static_cast<std::byte*>(cache.raw) + slot / block_size * cache.stride[0];
  return reinterpret_cast<float*>(block) + slot % block_size * n;
}

}  // namespace

// Staged, not in step memory: a dry run has no features and does not come here.
void vulkan_ops::to_time_major(Context& context, std::span<const float> x, const TensorView& y) {
  if (y.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    Recorder& recorder = timeline.recorder();
    record_transpose(recorder, timeline.stage({std::as_bytes(x)})[0], matrix_of(timeline, y));
  });
}

void vulkan_ops::upload(Context& context, std::span<const float> x, const TensorView& y) {
  if (context.dry_run || y.empty()) return;
  CHECK(static_cast<int64_t>(x.size()) == y.num_elements());
  vulkan_of(context).memory().copy_in(y.raw, x.data(), x.size_bytes());
}

void vulkan_ops::fill_zero(Context& context, const TensorView& y) {
  if (context.dry_run || y.empty()) return;
  DeviceMemory& memory = vulkan_of(context).memory();
  if (y.stride[0] == y.dim(1)) return memory.fill(y.raw, 0, static_cast<size_t>(y.num_elements()) * sizeof(float));
  for (int64_t i = 0; i < y.dim(0); ++i) memory.fill(y.row(i), 0, static_cast<size_t>(y.dim(1)) * sizeof(float));
}

void vulkan_ops::write_rows(Context& context, MakeRow make_row, const TensorView& y) {
  if (context.dry_run || y.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    stage_made_rows(timeline, make_row, y, [&](Recorder& recorder, const BufferRange& staged, const TensorView& some) {
      const int64_t n = y.dim(1);
      if (y.stride[0] == n) return recorder.copy(staged, range_of(timeline, some.f32(), some.num_elements()));
      const uint64_t bytes = static_cast<uint64_t>(n) * sizeof(float);
      for (int64_t i = 0; i < some.dim(0); ++i) {
        const BufferRange from{staged.buffer, staged.begin + static_cast<uint64_t>(i) * bytes, bytes};
        recorder.copy(from, range_of(timeline, some.row(i), n));
      }
    });
  });
}

void vulkan_ops::add_rows(Context& context, MakeRow make_row, const TensorView& y) {
  if (context.dry_run || y.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    stage_made_rows(timeline, make_row, y, [&](Recorder& recorder, const BufferRange& staged, const TensorView& some) {
      const auto rows = DeviceMatrix::dense(staged.buffer, to_u32(some.dim(0)), to_u32(y.dim(1)), staged.begin);
      record_add(recorder, rows, {}, matrix_of(timeline, some));
    });
  });
}

void vulkan_ops::gather_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y) {
  if (context.dry_run || y.empty()) return;
  if (x.empty()) return vulkan_ops::fill_zero(context, y);  // every row is none
  CHECK(x.dim(1) == y.dim(1) && static_cast<int64_t>(rows.size()) == y.dim(0));
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
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

void vulkan_ops::look_up_rows(Context& context, const TensorView& table, View<int32_t> rows, float scale,
                              const TensorView& y) {
  if (y.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    Recorder& recorder = timeline.recorder();
    const BufferRange list = timeline.stage({std::as_bytes(rows)})[0];
    record_gather_rows(recorder, table_of(timeline, table), list, scale, matrix_of(timeline, y));
  });
}

void vulkan_ops::add_looked_up_rows(Context& context, const TensorView& table, View<int32_t> rows,
                                    const TensorView& y) {
  if (y.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    Recorder& recorder = timeline.recorder();
    const BufferRange list = timeline.stage({std::as_bytes(rows)})[0];
    record_add_gathered_rows(recorder, table_of(timeline, table), list, matrix_of(timeline, y));
  });
}

void vulkan_ops::clear_missing_rows(Context& context, View<int32_t> rows, const TensorView& y) {
  if (y.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] != kNoRow) continue;
      timeline.recorder().fill(range_of(timeline, y.row(static_cast<int64_t>(i)), y.dim(1)), 0);
    }
  });
}

void vulkan_ops::scatter_add_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y) {
  if (x.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == kNoRow) continue;
      const auto from = static_cast<int64_t>(i);
      record_add(timeline.recorder(), matrix_of(timeline, x.rows(from, from + 1)), {},
                 matrix_of(timeline, y.rows(rows[i], rows[i] + 1)));
    }
  });
}

void vulkan_ops::add_gated(Context& context, const TensorView& x, const float* gate, int64_t gate_size,
                           const TensorView& y) {
  if (x.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    record_add(timeline.recorder(), matrix_of(timeline, x),
               gate_size == 0 ? BufferRange{} : range_of(timeline, gate, gate_size), matrix_of(timeline, y));
  });
}

void vulkan_ops::copy_rows_of_kind(Context& context, const TensorView& x, View<uint8_t> kinds, uint8_t kind,
                                   const TensorView& y) {
  if (x.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] != kind) continue;
      const auto row = static_cast<int64_t>(i);
      timeline.recorder().copy(range_of(timeline, x.row(row), x.dim(1)), range_of(timeline, y.row(row), y.dim(1)));
    }
  });
}

void vulkan_ops::write_row_slots(Context& context, const TensorView& x, View<int64_t> slots, int32_t block_size,
                                 const TensorView& cache) {
  if (x.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    for (size_t i = 0; i < slots.size(); ++i) {
      timeline.recorder().copy(range_of(timeline, x.row(static_cast<int64_t>(i)), x.dim(1)),
                               range_of(timeline, row_of_slot(cache, slots[i], block_size, x.dim(1)), x.dim(1)));
    }
  });
}

void vulkan_ops::read_row_slots(Context& context, const TensorView& cache, View<int64_t> slots, int32_t block_size,
                                View<int32_t> rows, const TensorView& y) {
  if (y.empty()) return;
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    for (size_t i = 0; i < slots.size(); ++i) {
      timeline.recorder().copy(range_of(timeline, row_of_slot(cache, slots[i], block_size, y.dim(1)), y.dim(1)),
                               range_of(timeline, y.row(rows[i]), y.dim(1)));
    }
  });
}

// Edits are in the range that all steps have, as block tables are: how many they are changes no op.
void vulkan_ops::look_at_scores(Context& context, const TensorView& scores, std::span<const ScoreLook> looks,
                                std::span<const uint32_t> edits, int64_t most_listed, const TensorView& found) {
  if (context.dry_run || scores.empty()) return;
  CHECK(static_cast<int64_t>(looks.size()) == scores.dim(0) && found.dim(0) == scores.dim(0) && !edits.empty());
  vulkan_ops::record(context, [&](VulkanTimeline& timeline) {
    std::vector<ScoreLook> moved(looks.begin(), looks.end());
    std::optional<BufferRange> of_step;
    if (timeline.is_in_step()) {
      const VulkanTimeline::StagedTable table = timeline.stage_table(std::as_bytes(edits));
      for (ScoreLook& look : moved) look.first_edit += table.first;
      of_step = table.range;
      edits = {};
    }
    Recorder& recorder = timeline.recorder();
    const std::vector<BufferRange> staged = timeline.stage({std::as_bytes(std::span(moved)), std::as_bytes(edits)});
    record_look_at_scores(recorder, matrix_of(timeline, scores), staged[0], of_step.value_or(staged[1]),
                          to_u32(most_listed), matrix_of(timeline, found));
  });
}

}  // namespace transept
