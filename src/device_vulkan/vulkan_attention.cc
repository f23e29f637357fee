#include "device_vulkan/vulkan_attention.h"

#include <optional>
#include <vector>

#include "attention/checks.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "device_vulkan/model_views.h"
#include "device_vulkan/record_int8.h"
#include "device_vulkan/vulkan_model_device.h"

namespace transept {
namespace {

DeviceKv kv_of(const VulkanTimeline& timeline, const AttentionMetadata& metadata, const AttentionArgs& args) {
  const TensorView& cache = args.kv_cache;
  const int64_t bytes = (cache.dim(0) - 1) * cache.stride[0] + cache.dim(1);
  return {.cache = timeline.range(cache.raw, static_cast<uint64_t>(bytes)),
          .num_blocks = to_u32(cache.dim(0)),
          .block_size = to_u32(metadata.block_size),
          .block_stride = to_u32(cache.stride[0] / static_cast<int64_t>(sizeof(uint32_t))),
          .kv_heads = to_u32(num_kv_heads(args)),
          .head_dim = to_u32((args.k.empty() ? args.q : args.k).dim(2)),
          .type = kv_type(metadata.kv_dtype)};
}

DeviceBias bias_of(const VulkanTimeline& timeline, const AttentionBias* bias) {
  if (bias == nullptr) return {};
  DeviceBias result{.kind = bias->kind};
  switch (bias->kind) {
    case BiasKind::kNone: break;
    case BiasKind::kMaterialized: {
      const TensorView& values = bias->materialized;
      int64_t last = 0;
      for (int i = 0; i < values.rank; ++i) last += (values.dim(i) - 1) * values.stride[static_cast<size_t>(i)];
      result.values = range_of(timeline, values.f32(), last + 1);
      for (size_t i = 0; i < result.strides.size(); ++i) result.strides[i] = to_u32(values.stride[i]);
      break;
    }
    case BiasKind::kByDistance: {
      const int64_t end = bias->max_distance + kDistancePadding;
      result.values = range_of(timeline, bias->values - end, bias->num_heads * bias->head_stride);
      result.strides[1] = to_u32(bias->head_stride);
      result.max_distance = to_u32(bias->max_distance);
      result.origin = to_u32(end);
      break;
    }
    case BiasKind::kAlibi: result.values = range_of(timeline, bias->values, bias->num_heads); break;
  }
  return result;
}

// A row of q each. Positions are within [0, 2^31): lengths are.
std::vector<AttentionRow> rows_of(const AttentionMetadata& metadata, const AttentionArgs& args, bool is_dense) {
  std::vector<AttentionRow> rows;
  rows.reserve(static_cast<size_t>(args.q.dim(0)));
  for (int64_t seq = 0; seq < metadata.num_seqs; ++seq) {
    const auto s = static_cast<size_t>(seq);
    const int64_t first = metadata.query_start_loc[s], end = metadata.query_start_loc[s + 1];
    const int64_t table = is_dense ? metadata.kv_start_loc[s] : seq * metadata.max_blocks_per_seq;
    for (int64_t row = 0; row < end - first; ++row) {
      const KeyRange keys = visible_keys(metadata, args.causal, seq, row);
      rows.push_back({.table = to_u32(table),
                      .key_begin = to_u32(keys.begin),
                      .key_end = to_u32(keys.end),
                      .position = static_cast<int32_t>(row_position(metadata, seq, row)),
                      .place = to_u32(row),
                      .sequence = to_u32(seq)});
    }
  }
  CHECK(std::ssize(rows) == args.q.dim(0), "a batch of ", rows.size(), " rows, not ", args.q.dim(0));
  return rows;
}

// A slot that is none of a block's is left out by the kernel: that of a row that only fills a step.
std::vector<uint32_t> slots_of(const AttentionMetadata& metadata) {
  std::vector<uint32_t> slots;
  slots.reserve(metadata.slot_mapping.size());
  for (const int64_t slot : metadata.slot_mapping) slots.push_back(slot == kNoSlot ? UINT32_MAX : to_u32(slot));
  return slots;
}

void write_cache(VulkanTimeline& timeline, const AttentionMetadata& metadata, const AttentionArgs& args) {
  Recorder& recorder = timeline.recorder();
  const std::vector<uint32_t> slots = slots_of(metadata);
  const BufferRange staged = timeline.stage_once(std::as_bytes(std::span(slots)));
  record_write_kv(recorder, matrix_of_heads(timeline, args.k), matrix_of_heads(timeline, args.v), staged,
                  kv_of(timeline, metadata, args));
}

// The rows that are captured and their places, and how many they are; then the heads.
struct Wanted {
  std::vector<DeviceWanted> list;
  uint32_t num_rows = 0, num_heads = 0;
};

Wanted wanted_of(const AttentionCapture* capture, int64_t num_rows) {
  Wanted wanted;
  if (capture == nullptr) return wanted;
  for (int64_t row = 0; row < num_rows; ++row) {
    if (capture->place(row) >= 0) wanted.list.push_back({to_u32(row), to_u32(capture->place(row))});
  }
  wanted.num_rows = static_cast<uint32_t>(wanted.list.size());
  for (size_t i = 0; i < capture->heads.size(); ++i) {
    if (capture->heads[i] >= 0) wanted.list.push_back({to_u32(capture->heads[i]), static_cast<uint32_t>(i)});
  }
  wanted.num_heads = static_cast<uint32_t>(wanted.list.size()) - wanted.num_rows;
  return wanted;
}

DeviceCapture capture_of(const VulkanTimeline& timeline, const TensorView& out, const Wanted& wanted,
                         const BufferRange& staged) {
  const int64_t floats = (out.dim(0) - 1) * out.stride[0] + (out.dim(1) - 1) * out.stride[1] + out.dim(2);
  return {.wanted = staged,
          .num_rows = wanted.num_rows,
          .num_heads = wanted.num_heads,
          .out = range_of(timeline, out.f32(), floats),
          .index_stride = to_u32(out.stride[0]),
          .row_stride = to_u32(out.stride[1]),
          .num_keys = to_u32(out.dim(2))};
}

void attend(VulkanTimeline& timeline, AttentionType type, const AttentionMetadata& metadata,
            const AttentionArgs& args) {
  const bool is_dense = type == AttentionType::kEncoder;
  CHECK(!is_dense || args.capture == nullptr);
  std::vector<AttentionRow> rows = rows_of(metadata, args, is_dense);
  const Wanted wanted = wanted_of(args.capture, args.q.dim(0));
  std::span<const std::byte> tables = is_dense ? std::span<const std::byte>() : std::as_bytes(metadata.block_tables);
  std::optional<BufferRange> of_step;  // tables of any length in one range
  if (!is_dense && timeline.is_in_step()) {
    const VulkanTimeline::StagedTable table = timeline.stage_table(tables);
    for (AttentionRow& row : rows) row.table += table.first;
    of_step = table.range;
    tables = {};
  }
  Recorder& recorder = timeline.recorder();
  BufferRange staged_rows, capture;
  if (of_step.has_value() && wanted.list.empty()) {
    staged_rows = timeline.stage_once(std::as_bytes(std::span(rows)));
  } else {
    const std::vector<BufferRange> staged =
        timeline.stage({std::as_bytes(std::span(rows)), tables, std::as_bytes(std::span(wanted.list))});
    staged_rows = staged[0], capture = staged[2];
    if (!of_step.has_value()) of_step = staged[1];
  }
  const DeviceAttention attention{.q = matrix_of_heads(timeline, args.q),
                                  .out = matrix_of_heads(timeline, args.out),
                                  .heads = to_u32(args.q.dim(1)),
                                  .scale = args.scale,
                                  .rows = staged_rows,
                                  .bias = bias_of(timeline, args.bias)};
  if (is_dense) {
    return record_attention(recorder, attention, matrix_of_heads(timeline, args.k), matrix_of_heads(timeline, args.v),
                            to_u32(num_kv_heads(args)));
  }
  const DeviceKv kv = kv_of(timeline, metadata, args);
  record_attention(recorder, attention, kv, *of_step);
  if (wanted.num_rows == 0 || wanted.num_heads == 0 || args.capture->out.empty()) return;
  record_capture(recorder, attention, kv, *of_step, capture_of(timeline, args.capture->out, wanted, capture));
}

void round_keys(VulkanTimeline& timeline, const AttentionArgs& args, const AttentionArgs& seen) {
  const uint32_t heads = to_u32(args.k.dim(1));
  record_round_heads(timeline.recorder(), matrix_of_heads(timeline, args.k), heads, matrix_of_heads(timeline, seen.k));
  record_round_heads(timeline.recorder(), matrix_of_heads(timeline, args.v), heads, matrix_of_heads(timeline, seen.v));
}

}  // namespace

bool VulkanAttention::supports(const AttentionCapabilities& wanted, std::string* why) const {
  return supports_attention(wanted, why);
}

size_t VulkanAttention::block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const {
  const int64_t part = kv_part_bytes(kv_type(kv_dtype), block_size, spec.head_dim);
  return static_cast<size_t>(round_up(part * spec.num_kv_heads, kBlockAlignment));
}

void VulkanAttention::plan(Context& /*context*/, ForwardBatch& /*batch*/) const {}

void VulkanAttention::run(Context& context, AttentionType type, const AttentionMetadata& metadata,
                          const AttentionArgs& args) const {
  check_attention_args(context, type, metadata, args, *this);
  // An encoder's keys and values are rounded in step memory.
  const bool rounds = type == AttentionType::kEncoder && metadata.kv_dtype == DType::kInt8 && !args.q.empty();
  const Arena::Scope scope(context.arena);
  AttentionArgs seen = args;
  if (rounds) {
    seen.k = context.arena.tensor(DType::kFloat32, {args.k.dim(0), args.k.dim(1), args.k.dim(2)});
    seen.v = context.arena.tensor(DType::kFloat32, {args.k.dim(0), args.k.dim(1), args.k.dim(2)});
  }
  if (context.dry_run) return;
  vulkan_of(context).space().with_timeline([&](VulkanTimeline& timeline) {
    if (writes_cache(type, args)) write_cache(timeline, metadata, args);
    if (rounds) round_keys(timeline, args, seen);
    if (!args.q.empty()) attend(timeline, type, metadata, seen);
  });
}

}  // namespace transept
