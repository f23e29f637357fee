#include <algorithm>
#include <cstring>

#include "attention/checks.h"
#include "base/checked_math.h"
#include "device_vulkan/vulkan_backend_testing.h"

namespace transept::testing {

size_t DeviceBackend::block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const {
  const int64_t part = kv_part_bytes(kv_type(kv_dtype), block_size, spec.head_dim);
  return static_cast<size_t>(round_up(part * spec.num_kv_heads, kBlockAlignment));
}

// [rows, heads, dim] with their gaps.
DeviceMatrix DeviceBackend::put(const TensorView& view) const {
  const auto columns = static_cast<uint32_t>(view.dim(1) * view.dim(2)), rows = static_cast<uint32_t>(view.dim(0));
  const auto stride = static_cast<uint32_t>(view.stride[0]);
  const std::vector<float> values(view.f32(), view.f32() + (rows - 1) * view.stride[0] + columns);
  return {rig_.put(values), 0, rows, columns, stride};
}

void DeviceBackend::put_bias(const AttentionBias& bias, int64_t seqs, int64_t rows, int64_t keys,
                             DeviceBias& out) const {
  out.kind = bias.kind;
  std::vector<float> values;
  if (bias.kind == BiasKind::kMaterialized) {
    const std::array<int64_t, 4> dims{seqs, bias.materialized.dim(1), rows, keys};
    int64_t last = 0;
    for (size_t i = 0; i < 4; ++i) {
      out.strides[i] = static_cast<uint32_t>(bias.materialized.stride[i]);
      last += (dims[i] - 1) * bias.materialized.stride[i];
    }
    values.assign(bias.materialized.f32(), bias.materialized.f32() + last + 1);
  } else if (bias.kind == BiasKind::kByDistance) {
    out.max_distance = static_cast<uint32_t>(bias.max_distance);
    out.origin = out.max_distance;
    out.strides[1] = 2 * out.max_distance + 1;
    for (int64_t h = 0; h < bias.num_heads; ++h) {
      const float* zero = bias.values + h * bias.head_stride;
      values.insert(values.end(), zero - bias.max_distance, zero + bias.max_distance + 1);
    }
  } else {
    values.assign(bias.values, bias.values + bias.num_heads);
  }
  out.values = rig_.put_range(values);
}

std::vector<AttentionRow> DeviceBackend::rows_of(AttentionType type, const AttentionMetadata& metadata,
                                                 const AttentionArgs& args) const {
  std::vector<AttentionRow> rows;
  for (int64_t seq = 0; seq < metadata.num_seqs; ++seq) {
    const auto s = static_cast<size_t>(seq);
    for (int64_t i = 0; i < metadata.query_start_loc[s + 1] - metadata.query_start_loc[s]; ++i) {
      const KeyRange visible = visible_keys(metadata, args.causal, seq, i);
      const auto table = type == AttentionType::kEncoder ? metadata.kv_start_loc[s]
                                                         : static_cast<int32_t>(seq) * metadata.max_blocks_per_seq;
      rows.push_back({.table = static_cast<uint32_t>(table),
                      .key_begin = static_cast<uint32_t>(visible.begin),
                      .key_end = static_cast<uint32_t>(std::max(visible.begin, visible.end)),
                      .position = static_cast<int32_t>(row_position(metadata, seq, i)),
                      .place = static_cast<uint32_t>(i),
                      .sequence = static_cast<uint32_t>(seq)});
    }
  }
  return rows;
}

// Every second row, the last first; the others keep what is there.
BufferRange DeviceBackend::record_captured(const AttentionCapture& capture, const DeviceAttention& attention,
                                           const DeviceKv& kv, const BufferRange& tables) const {
  const TensorView& out = capture.out;
  const std::vector<float> before(out.f32(), out.f32() + out.num_elements());
  const BufferRange there = rig_.put_range(before);
  std::vector<DeviceWanted> wanted;
  for (uint32_t row = attention.q.rows; row-- > 0;) {
    if (row % 2 == 0) wanted.push_back({row, row});
  }
  const auto num_rows = static_cast<uint32_t>(wanted.size());
  for (size_t i = 0; i < capture.heads.size(); ++i) {
    wanted.push_back({static_cast<uint32_t>(capture.heads[i]), static_cast<uint32_t>(i)});
  }
  record_capture(rig_.recorder(), attention, kv, tables,
                 {.wanted = {rig_.put(wanted), 0, wanted.size() * sizeof(DeviceWanted)},
                  .num_rows = num_rows,
                  .num_heads = static_cast<uint32_t>(capture.heads.size()),
                  .out = there,
                  .index_stride = static_cast<uint32_t>(out.stride[0]),
                  .row_stride = static_cast<uint32_t>(out.stride[1]),
                  .num_keys = static_cast<uint32_t>(out.dim(2))});
  return there;
}

void DeviceBackend::run(Context&, AttentionType type, const AttentionMetadata& metadata,
                        const AttentionArgs& args) const {
  const bool is_dense = type == AttentionType::kEncoder;
  DeviceKv kv;
  BufferId cache = BufferId::kNone;
  std::vector<float> host_cache;
  const int64_t block_floats = is_dense ? 0 : args.kv_cache.stride[0] / 4;
  if (!is_dense) {
    // The layer among others: the device's range begins within the first block.
    const int64_t blocks = args.kv_cache.dim(0), layer = args.kv_cache.dim(1) / 4;
    const auto floats = static_cast<size_t>((blocks - 1) * block_floats + layer);
    host_cache.resize(floats);
    std::memcpy(host_cache.data(), args.kv_cache.raw, floats * sizeof(float));
    cache = rig_.put(host_cache);
    const int64_t kv_heads = args.num_kv_heads != 0 ? args.num_kv_heads : args.k.dim(1);
    const int64_t dim = args.k.empty() ? args.q.dim(2) : args.k.dim(2);
    kv = {{cache, 0, floats * sizeof(float)},
          static_cast<uint32_t>(blocks),
          static_cast<uint32_t>(metadata.block_size),
          static_cast<uint32_t>(block_floats),
          static_cast<uint32_t>(kv_heads),
          static_cast<uint32_t>(dim),
          kv_type(metadata.kv_dtype)};
  }
  Recorder& recorder = rig_.recorder();
  if (!is_dense && !args.k.empty()) {
    std::vector<uint32_t> slots(metadata.slot_mapping.begin(), metadata.slot_mapping.end());
    record_write_kv(recorder, put(args.k), put(args.v), {rig_.put(slots), 0, slots.size() * 4}, kv);
  }
  DeviceMatrix out;
  BufferRange captured;
  if (!args.q.empty()) {
    const DeviceMatrix q = put(args.q);
    out = q;
    out.buffer = rig_.make(q.range().size / 4);
    DeviceAttention attention{.q = q, .out = out, .heads = static_cast<uint32_t>(args.q.dim(1)), .scale = args.scale};
    const std::vector<AttentionRow> rows = rows_of(type, metadata, args);
    attention.rows = {rig_.put(rows), 0, rows.size() * sizeof(AttentionRow)};
    if (args.bias != nullptr) {
      put_bias(*args.bias, metadata.num_seqs, metadata.max_query_len, metadata.max_kv_len, attention.bias);
    }
    if (is_dense) {
      record_attention(recorder, attention, put(args.k), put(args.v), static_cast<uint32_t>(args.k.dim(1)));
    } else {
      std::vector<int32_t> tables(metadata.block_tables.begin(), metadata.block_tables.end());
      const BufferRange blocks{rig_.put(tables), 0, tables.size() * 4};
      record_attention(recorder, attention, kv, blocks);
      if (args.capture != nullptr) captured = record_captured(*args.capture, attention, kv, blocks);
    }
  }
  rig_.run();
  if (captured.buffer != BufferId::kNone) {
    const std::vector<std::byte> values = rig_.bytes(captured.buffer, 0, captured.size);
    std::memcpy(args.capture->out.raw, values.data(), values.size());
  }
  if (!args.q.empty()) {
    const std::vector<float> result = rig_.values(out.buffer, out.range().size / 4);
    for (uint32_t row = 0; row < out.rows; ++row) {
      std::memcpy(args.out.row(row), &result[size_t{row} * out.stride], out.columns * sizeof(float));
    }
  }
  if (!is_dense && !args.k.empty()) {
    const std::vector<std::byte> now = rig_.bytes(cache, 0, host_cache.size() * sizeof(float));
    std::memcpy(args.kv_cache.raw, now.data(), now.size());
  }
  rig_.clear();
}

}  // namespace transept::testing
