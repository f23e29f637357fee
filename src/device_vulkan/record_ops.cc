#include "device_vulkan/record_ops.h"

#include <bit>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "base/check.h"
#include "device_vulkan/kernels.h"
#include "ops/score_looks.h"

namespace transept {
namespace {

constexpr uint32_t kWord = 4;
constexpr uint32_t kPanel = 32;      // outputs (ops/packed_matrix.h)
constexpr uint32_t kMostDims = 256;  // of a head (kernels/attention.comp)

uint32_t groups(uint32_t count, uint32_t size) { return (count - 1) / size + 1; }
uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

void run(Recorder& recorder, const KernelSpec& kernel, std::initializer_list<uint32_t> arguments,
         std::initializer_list<BufferRange> operands, const Grid& grid) {
  recorder.run(kernel, std::as_bytes(std::span(arguments.begin(), arguments.size())),
               std::span(operands.begin(), operands.size()), grid);
}

void check_floats(const BufferRange& range, uint64_t count) { CHECK(range.size == count * kWord, range.size); }

// Bytes of the panels of a matrix.
uint64_t panel_bytes(const DeviceWeights& w) {
  const uint64_t panels = groups(w.n, kPanel);
  switch (w.format) {
    case DeviceFormat::kFloat32: return panels * kPanel * w.k * 4;
    case DeviceFormat::kFloat16: return panels * kPanel * w.k * 2;
    case DeviceFormat::kBFloat16: return panels * kPanel * groups(w.k, 32) * 32 * 2;
  }
  return 0;
}

}  // namespace

BufferRange DeviceMatrix::range() const {
  CHECK(rows > 0 && columns > 0);
  return {buffer, begin, (uint64_t{rows - 1} * stride + columns) * kWord};
}

void record_layer_norm(Recorder& recorder, const DeviceMatrix& x, const BufferRange& weight, const BufferRange& bias,
                       float epsilon, const DeviceMatrix& y) {
  CHECK(x.rows == y.rows && x.columns == y.columns);
  check_floats(weight, x.columns);
  check_floats(bias, x.columns);
  run(recorder, kLayerNormKernel, {x.columns, x.stride, y.stride, bits(epsilon)}, {x.range(), weight, bias, y.range()},
      {.x = x.rows});
}

void record_rms_norm(Recorder& recorder, const DeviceMatrix& x, const BufferRange& weight, float epsilon,
                     const DeviceMatrix& y) {
  CHECK(x.rows == y.rows && x.columns == y.columns);
  check_floats(weight, x.columns);
  run(recorder, kRmsNormKernel, {x.columns, x.stride, y.stride, bits(epsilon)}, {x.range(), weight, y.range()},
      {.x = x.rows});
}

// Sums of rows first, so that no sum is long.
void record_group_norm(Recorder& recorder, const DeviceMatrix& x, const BufferRange& weight, const BufferRange& bias,
                       float epsilon, const BufferRange& scratch, const DeviceMatrix& y) {
  CHECK(x.rows == y.rows && x.columns == y.columns);
  check_floats(weight, x.columns);
  check_floats(bias, x.columns);
  check_floats(scratch, group_norm_scratch(x.rows));
  // A line apart: what is bound for one begins at the device's alignment below it.
  constexpr uint64_t kLine = 64;
  const BufferRange mean{scratch.buffer, scratch.begin, kWord};
  const BufferRange variance{scratch.buffer, scratch.begin + kLine, kWord};
  const BufferRange sums{scratch.buffer, scratch.begin + 2 * kLine, uint64_t{x.rows} * kWord};
  const uint32_t count = bits(static_cast<float>(x.rows) * static_cast<float>(x.columns));
  // The first does not read the mean: x is bound in its place.
  run(recorder, kRowSumsKernel, {x.columns, x.stride, 0}, {x.range(), x.range(), sums}, {.x = x.rows});
  run(recorder, kMeanKernel, {x.rows, count}, {sums, mean}, {});
  run(recorder, kRowSumsKernel, {x.columns, x.stride, 1}, {x.range(), mean, sums}, {.x = x.rows});
  run(recorder, kMeanKernel, {x.rows, count}, {sums, variance}, {});
  run(recorder, kNormalizeKernel, {x.columns, x.stride, y.stride, bits(epsilon)},
      {x.range(), mean, variance, weight, bias, y.range()}, {.x = groups(x.columns, kMostLanes), .y = x.rows});
}

void record_product(Recorder& recorder, const DeviceMatrix& x, const DeviceWeights& w, const DeviceEpilogue& epilogue,
                    const DeviceMatrix& y) {
  CHECK(x.columns == w.k && y.columns == w.n && x.rows == y.rows, "[", x.rows, ", ", x.columns, "] by ", w.n, " x ",
        w.k);
  CHECK(w.panels.size == panel_bytes(w));
  const bool has_bias = epilogue.bias.buffer != BufferId::kNone;
  const bool has_residual = epilogue.residual.buffer != BufferId::kNone;
  if (has_bias) check_floats(epilogue.bias, w.n);
  if (has_residual) CHECK(epilogue.residual.rows == y.rows && epilogue.residual.columns == y.columns);
  CHECK(!overlap(x.range(), y.range()));
  const auto format = static_cast<size_t>(w.format);
  const bool has_tiles = w.tiling.rows > 0;
  CHECK(!has_tiles || w.format != DeviceFormat::kFloat32);
  uint32_t adds = (has_bias ? 1u : 0u) | (has_residual ? 2u : 0u);
  if (has_tiles) adds |= (w.tiling.rounds_inputs ? 4u : 0u) | w.tiling.exponent << 8;
  // What is not there is bound all the same, and not read.
  run(recorder, has_tiles ? kProductMatrixKernels[format - 1] : kProductKernels[format],
      {x.rows, w.n, w.k, x.stride, y.stride, has_residual ? epilogue.residual.stride : 0,
       static_cast<uint32_t>(epilogue.activation), adds},
      {x.range(), w.panels, has_bias ? epilogue.bias : x.range(), has_residual ? epilogue.residual.range() : x.range(),
       y.range()},
      {.x = groups(w.n, kPanel), .y = groups(x.rows, w.tiling.rows_of_group())});
}

void record_weight_range(Recorder& recorder, const BufferRange& numbers, const BufferRange& found) {
  const uint64_t words = numbers.size / kWord, num_groups = weight_range_groups(words);
  CHECK(words > 0 && words <= UINT32_MAX && found.size == num_groups * sizeof(DeviceWeightRange));
  run(recorder, kWeightRangeKernel, {static_cast<uint32_t>(words)}, {numbers, found},
      {.x = static_cast<uint32_t>(num_groups)});
}

void record_gated_activation(Recorder& recorder, Activation activation, const DeviceMatrix& gate, const DeviceMatrix& x,
                             const DeviceMatrix& y) {
  CHECK(gate.rows == y.rows && x.rows == y.rows && gate.columns == y.columns && x.columns == y.columns);
  run(recorder, kGatedActivationKernel, {y.columns, gate.stride, x.stride, y.stride, static_cast<uint32_t>(activation)},
      {gate.range(), x.range(), y.range()}, {.x = groups(y.columns, kMostLanes), .y = y.rows});
}

void record_add(Recorder& recorder, const DeviceMatrix& x, const BufferRange& gate, const DeviceMatrix& y) {
  CHECK(x.rows == y.rows && x.columns == y.columns);
  const bool has_gate = gate.buffer != BufferId::kNone;
  const auto gate_size = static_cast<uint32_t>(has_gate ? gate.size / kWord : 0);
  CHECK(!has_gate || gate_size == 1 || gate_size == y.columns);
  run(recorder, kAddRowsKernel, {y.columns, x.stride, y.stride, gate_size},
      {x.range(), has_gate ? gate : x.range(), y.range()}, {.x = groups(y.columns, kMostLanes), .y = y.rows});
}

namespace {

void run_gather(Recorder& recorder, const KernelSpec (&kernels)[3], const DeviceTable& table, const BufferRange& rows,
                float scale, const DeviceMatrix& y) {
  CHECK(table.columns == y.columns && rows.size == uint64_t{y.rows} * kWord);
  const uint64_t elements = uint64_t{table.rows} * table.columns;
  CHECK(elements <= UINT32_MAX &&
        table.data.size >= (table.format == DeviceFormat::kFloat32 ? elements * 4 : elements * 2));
  run(recorder, kernels[static_cast<size_t>(table.format)],
      {y.columns, table.rows, table.columns, y.stride, bits(scale)}, {table.data, rows, y.range()},
      {.x = groups(y.columns, kMostLanes), .y = y.rows});
}

}  // namespace

void record_gather_rows(Recorder& recorder, const DeviceTable& table, const BufferRange& rows, float scale,
                        const DeviceMatrix& y) {
  run_gather(recorder, kGatherRowsKernels, table, rows, scale, y);
}

void record_add_gathered_rows(Recorder& recorder, const DeviceTable& table, const BufferRange& rows,
                              const DeviceMatrix& y) {
  run_gather(recorder, kAddGatheredRowsKernels, table, rows, 1, y);
}

void record_rope(Recorder& recorder, const DeviceMatrix& cosines, const DeviceMatrix& sines, bool halves,
                 uint32_t heads, const DeviceMatrix& x) {
  CHECK(heads > 0 && x.columns % heads == 0 && 2 * cosines.columns <= x.columns / heads);
  CHECK(cosines.rows == x.rows && sines.rows == x.rows && sines.columns == cosines.columns &&
        sines.stride == cosines.stride);
  run(recorder, kRopeKernel, {cosines.columns, halves ? 1u : 0u, cosines.stride, x.stride, x.columns / heads},
      {cosines.range(), sines.range(), x.range()}, {.x = x.rows, .y = heads});
}

void record_transpose(Recorder& recorder, const BufferRange& x, const DeviceMatrix& y) {
  check_floats(x, uint64_t{y.rows} * y.columns);
  run(recorder, kTransposeKernel, {y.columns, y.rows, y.stride}, {x, y.range()},
      {.x = groups(y.columns, kMostLanes), .y = y.rows});
}

namespace {

void check_kv(const DeviceKv& kv) {
  CHECK(kv.num_blocks > 0 && kv.block_size > 0 && kv.kv_heads > 0 && kv.head_dim > 0 && kv.head_dim <= kMostDims);
  const uint64_t bytes = static_cast<uint64_t>(kv_part_bytes(kv.type, kv.block_size, kv.head_dim)) * kv.kv_heads;
  const uint64_t stride = uint64_t{kv.block_stride} * kWord;
  CHECK(bytes <= stride && kv.cache.size >= uint64_t{kv.num_blocks - 1} * stride + bytes);
}

struct Keys {
  BufferRange k, v, tables;
  uint32_t block_size, block_stride, num_blocks, k_stride, v_stride, kv_heads, head_dim;
  KvType type = KvType::kFloat32;
};

size_t index_of(KvType type) { return static_cast<size_t>(type); }

// The arguments of kernels/scores.glsl.
std::vector<uint32_t> arguments_of(const DeviceAttention& args, const Keys& keys, uint32_t out_stride) {
  const DeviceBias& bias = args.bias;
  CHECK(args.heads > 0 && keys.kv_heads > 0 && args.heads % keys.kv_heads == 0);
  CHECK(args.q.columns == args.heads * keys.head_dim && args.rows.size == uint64_t{args.q.rows} * sizeof(AttentionRow));
  const bool is_table = bias.kind == BiasKind::kByDistance;
  return {args.q.stride,
          keys.head_dim,
          out_stride,
          keys.head_dim,
          args.heads / keys.kv_heads,
          keys.head_dim,
          bits(args.scale),
          keys.block_size,
          keys.block_stride,
          keys.num_blocks,
          keys.k_stride,
          keys.head_dim,
          keys.v_stride,
          keys.head_dim,
          static_cast<uint32_t>(bias.kind),
          bias.strides[0],
          bias.strides[1],
          bias.strides[2],
          bias.strides[3],
          is_table ? bias.max_distance : 0,
          is_table ? bias.origin : 0};
}

// What is not there is bound all the same, and not read.
BufferRange bias_values(const DeviceAttention& args) {
  return args.bias.kind == BiasKind::kNone ? args.q.range() : args.bias.values;
}

void run(Recorder& recorder, const KernelSpec& kernel, const std::vector<uint32_t>& arguments,
         std::initializer_list<BufferRange> operands, const Grid& grid) {
  recorder.run(kernel, std::as_bytes(std::span(arguments)), std::span(operands.begin(), operands.size()), grid);
}

void record(Recorder& recorder, const DeviceAttention& args, const Keys& keys) {
  CHECK(args.out.columns == args.q.columns && args.out.rows == args.q.rows);
  run(recorder, kAttentionKernels[index_of(keys.type)], arguments_of(args, keys, args.out.stride),
      {args.q.range(), keys.k, keys.v, args.rows, keys.tables, bias_values(args), args.out.range()},
      {.x = args.q.rows, .y = args.heads});
}

Keys keys_of(const DeviceKv& kv, const BufferRange& tables) {
  check_kv(kv);
  return {kv.cache, kv.cache, tables,      kv.block_size, kv.block_stride, kv.num_blocks,
          0,        0,        kv.kv_heads, kv.head_dim,   kv.type};
}

}  // namespace

void record_write_kv(Recorder& recorder, const DeviceMatrix& k, const DeviceMatrix& v, const BufferRange& slots,
                     const DeviceKv& kv) {
  check_kv(kv);
  CHECK(k.columns == kv.kv_heads * kv.head_dim && v.columns == k.columns && v.rows == k.rows);
  CHECK(slots.size == uint64_t{k.rows} * kWord && uint64_t{kv.num_blocks} * kv.block_size <= UINT32_MAX);
  run(recorder, kWriteKvKernels[index_of(kv.type)],
      {kv.head_dim, k.stride, kv.head_dim, v.stride, kv.head_dim, kv.block_size, kv.block_stride,
       kv.num_blocks * kv.block_size},
      {k.range(), v.range(), slots, kv.cache}, {.x = k.rows, .y = kv.kv_heads});
}

void record_attention(Recorder& recorder, const DeviceAttention& args, const DeviceKv& kv, const BufferRange& tables) {
  record(recorder, args, keys_of(kv, tables));
}

void record_capture(Recorder& recorder, const DeviceAttention& args, const DeviceKv& kv, const BufferRange& tables,
                    const DeviceCapture& capture) {
  CHECK(capture.wanted.size == (uint64_t{capture.num_rows} + capture.num_heads) * sizeof(DeviceWanted));
  const Keys keys = keys_of(kv, tables);
  std::vector<uint32_t> arguments = arguments_of(args, keys, capture.row_stride);
  arguments.insert(arguments.end(), {capture.num_rows, capture.index_stride, capture.num_keys});
  run(recorder, kCaptureKernels[index_of(kv.type)], arguments,
      {args.q.range(), keys.k, capture.wanted, args.rows, keys.tables, bias_values(args), capture.out},
      {.x = capture.num_rows, .y = capture.num_heads});
}

void record_attention(Recorder& recorder, const DeviceAttention& args, const DeviceMatrix& k, const DeviceMatrix& v,
                      uint32_t kv_heads) {
  CHECK(kv_heads > 0 && k.columns % kv_heads == 0 && v.columns == k.columns && v.rows == k.rows);
  const uint32_t head_dim = k.columns / kv_heads;
  CHECK(head_dim <= kMostDims);
  record(recorder, args, {k.range(), v.range(), args.rows, 0, 0, 1, k.stride, v.stride, kv_heads, head_dim});
}

void record_choose(Recorder& recorder, const DeviceMatrix& x, const BufferRange& choices) {
  CHECK(choices.size == uint64_t{x.rows} * sizeof(DeviceChoice));
  run(recorder, kChooseKernel, {x.columns, x.stride}, {x.range(), choices}, {.x = x.rows});
}

void record_look_at_scores(Recorder& recorder, const DeviceMatrix& x, const BufferRange& looks,
                           const BufferRange& edits, uint32_t most_listed, const DeviceMatrix& found) {
  CHECK(looks.size == uint64_t{x.rows} * sizeof(ScoreLook) && found.rows == x.rows);
  CHECK(found.columns == static_cast<uint64_t>(found_words(most_listed)));
  run(recorder, kLookAtScoresKernel, {x.columns, x.stride, found.stride, most_listed},
      {looks, edits, x.range(), found.range()}, {.x = x.rows});
}

}  // namespace transept
