#include "device_vulkan/fuse_ops.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <optional>

#include "device_vulkan/kernels.h"

namespace transept {
namespace {

constexpr uint64_t kWord = 4;

uint32_t argument(const RecordedOp& op, size_t i) {
  uint32_t value;
  std::memcpy(&value, op.arguments.data() + i * kWord, kWord);
  return value;
}

// The index of a kernel in a list of them, or none.
template <size_t N>
std::optional<size_t> index_in(const KernelSpec (&kernels)[N], const RecordedOp& op) {
  const auto found = std::find_if(std::begin(kernels), std::end(kernels),
                                  [&](const KernelSpec& kernel) { return &kernel == op.kernel; });
  if (found == std::end(kernels)) return std::nullopt;
  return static_cast<size_t>(found - std::begin(kernels));
}

// A product without a tail (record_product()).
struct Product {
  const RecordedOp& op;
  size_t format;  // in kProductTailKernels
  uint32_t rows, n, y_stride;
  BufferRange y;

  static std::optional<Product> of(const RecordedOp& op) {
    if (op.kind != RecordedOp::Kind::kKernel) return std::nullopt;
    std::optional<size_t> format = index_in(kProductKernels, op);
    if (op.kernel == &kProductInt8Kernel) format = std::size(kProductKernels);
    if (const std::optional<size_t> by_matrices = index_in(kProductMatrixKernels, op); by_matrices.has_value()) {
      format = std::size(kProductKernels) + 1 + *by_matrices;
    }
    if (!format.has_value()) return std::nullopt;
    Product product{
        op, *format, argument(op, 0), argument(op, 1), argument(op, 4), op.operands[op.operands.size() - 1]};
    const bool has_residual = (argument(op, 7) & 2) != 0;
    const bool is_own = op.operands[op.operands.size() - 2] == product.y && argument(op, 5) == product.y_stride;
    if (has_residual && !is_own) return std::nullopt;
    return product;
  }

  bool touches(const BufferRange& range) const {
    return std::any_of(op.operands.begin(), op.operands.end(),
                       [&](const BufferRange& operand) { return overlap(operand, range); });
  }
  // The first of `columns` columns of y in rows of this range, all rows; none: they are no columns of y.
  std::optional<uint32_t> column_of(const BufferRange& range, uint32_t stride, uint32_t columns) const {
    if (range.buffer != y.buffer || range.begin < y.begin || stride != y_stride) return std::nullopt;
    const uint64_t first = (range.begin - y.begin) / kWord;
    if (first + columns > n || range.size != (uint64_t{rows - 1} * stride + columns) * kWord) return std::nullopt;
    return static_cast<uint32_t>(first);
  }

  // With a tail of these arguments, and of operands behind y.
  RecordedOp with(ProductTail tail, std::initializer_list<uint32_t> arguments, std::initializer_list<BufferRange> more,
                  const BufferRange& arrivals) const {
    std::array<uint32_t, kMaxArgumentBytes / kWord> words{};
    size_t count = 0;
    for (const size_t i : {0, 1, 2, 3, 4, 6, 7}) words[count++] = argument(op, i);
    for (const uint32_t value : arguments) words[count++] = value;
    std::vector<BufferRange> operands(op.operands.begin(), op.operands.end() - 2);
    operands.push_back(y);
    operands.insert(operands.end(), more);
    operands.push_back({arrivals.buffer, arrivals.begin, op.grid.y * kWord});
    return {.kind = RecordedOp::Kind::kKernel,
            .kernel = &kProductTailKernels[format][static_cast<size_t>(tail)],
            .arguments = Few<std::byte, kMaxArgumentBytes>(std::as_bytes(std::span(words).first(count))),
            .operands = Few<BufferRange, kMaxOperands>(operands),
            .grid = op.grid};
  }
};

std::optional<RecordedOp> with_norm(const Product& product, const RecordedOp& norm, const BufferRange& arrivals) {
  const bool is_layer = norm.kernel == &kLayerNormKernel;
  if (!is_layer && norm.kernel != &kRmsNormKernel) return std::nullopt;
  const BufferRange &gain = norm.operands[1], &normed = norm.operands[norm.operands.size() - 1];
  const uint32_t normed_stride = argument(norm, 2);
  if (product.column_of(norm.operands[0], argument(norm, 1), argument(norm, 0)) != 0u) return std::nullopt;
  if (argument(norm, 0) != product.n || norm.grid.x != product.rows) return std::nullopt;
  const bool is_in_place = normed == product.y && normed_stride == product.y_stride;
  if (!is_in_place && product.touches(normed)) return std::nullopt;
  const std::initializer_list<uint32_t> arguments = {normed_stride, argument(norm, 3)};
  if (overlap(gain, product.y)) return std::nullopt;
  if (!is_layer) return product.with(ProductTail::kRmsNorm, arguments, {gain, normed}, arrivals);
  if (overlap(norm.operands[2], product.y)) return std::nullopt;
  return product.with(ProductTail::kLayerNorm, arguments, {gain, norm.operands[2], normed}, arrivals);
}

std::optional<RecordedOp> with_write_kv(const Product& product, const RecordedOp& write, const BufferRange& arrivals) {
  const std::optional<size_t> type = index_in(kWriteKvKernels, write);
  if (!type.has_value()) return std::nullopt;
  const uint32_t head_dim = argument(write, 0), kv_heads = write.grid.y, width = kv_heads * head_dim;
  const std::optional<uint32_t> k_first = product.column_of(write.operands[0], argument(write, 1), width),
                                v_first = product.column_of(write.operands[1], argument(write, 3), width);
  if (!k_first.has_value() || !v_first.has_value() || write.grid.x != product.rows) return std::nullopt;
  if (argument(write, 2) != head_dim || argument(write, 4) != head_dim) return std::nullopt;
  const BufferRange &slots = write.operands[2], &cache = write.operands[3];
  if (product.touches(cache) || overlap(slots, product.y)) return std::nullopt;
  const auto tail = static_cast<ProductTail>(static_cast<size_t>(ProductTail::kWriteKv) + *type);
  return product.with(
      tail, {*k_first, *v_first, kv_heads, head_dim, argument(write, 5), argument(write, 6), argument(write, 7)},
      {slots, cache}, arrivals);
}

std::optional<RecordedOp> with_gate(const Product& product, const RecordedOp& gated, const BufferRange& arrivals) {
  if (gated.kernel != &kGatedActivationKernel || gated.grid.y != product.rows) return std::nullopt;
  const uint32_t width = argument(gated, 0);
  std::array<std::optional<uint32_t>, 3> firsts;
  for (size_t i = 0; i < firsts.size(); ++i) {
    firsts[i] = product.column_of(gated.operands[i], argument(gated, 1 + i), width);
    if (!firsts[i].has_value()) return std::nullopt;
  }
  const uint32_t gate = *firsts[0], x = *firsts[1], made = *firsts[2];
  for (const uint32_t read : {gate, x}) {
    if (made != read && made < read + width && read < made + width) return std::nullopt;
  }
  return product.with(ProductTail::kGate, {width, gate, x, made, argument(gated, 4)}, {}, arrivals);
}

std::optional<RecordedOp> with_tail(const RecordedOp& first, const RecordedOp& second, const FusionRoom& room) {
  if (second.kind != RecordedOp::Kind::kKernel) return std::nullopt;
  const std::optional<Product> product = Product::of(first);
  if (!product.has_value() || first.grid.y > room.arrivals.size / kWord) return std::nullopt;
  for (const auto& with : {with_norm, with_write_kv, with_gate}) {
    std::optional<RecordedOp> op = with(*product, second, room.arrivals);
    if (op.has_value() && op->operands.size() <= room.max_operands) return op;
  }
  return std::nullopt;
}

constexpr uint32_t kPanel = 32, kBlock = 64, kParts = 4;  // outputs, inputs, quarters (kernels/panels.glsl)
constexpr uint32_t kLayerNorm = 1, kRmsNorm = 2;          // of kernels/attention.comp

// A norm of a product's y behind attention; of none, `kind` is 0.
struct NormBehind {
  uint32_t kind = 0, stride = 0, epsilon = 0;
  BufferRange gain, shift, normed;
};

std::optional<NormBehind> norm_behind(const RecordedOp& attention, const Product& product, const RecordedOp& norm) {
  if (norm.kind != RecordedOp::Kind::kKernel) return std::nullopt;
  const std::optional<RecordedOp> fused = with_norm(product, norm, {});  // what it asks for holds here, too
  if (!fused.has_value()) return std::nullopt;
  NormBehind behind{.kind = norm.kernel == &kLayerNormKernel ? kLayerNorm : kRmsNorm,
                    .stride = argument(norm, 2),
                    .epsilon = argument(norm, 3),
                    .gain = norm.operands[1],
                    .shift = norm.operands[norm.operands.size() - 2],
                    .normed = norm.operands[norm.operands.size() - 1]};
  if (behind.kind == kRmsNorm) behind.shift = behind.gain;
  const bool is_free = std::none_of(attention.operands.begin(), attention.operands.end(),
                                    [&](const BufferRange& operand) { return overlap(operand, behind.normed); });
  return is_free ? std::optional(behind) : std::nullopt;
}

// Attention with the product of what it gives.
struct AttentionOut {
  const RecordedOp& attention;
  Product product;
  size_t type;  // of KV

  static std::optional<AttentionOut> of(const RecordedOp& attention, const RecordedOp& second, const FusionRoom& room) {
    if (attention.kind != RecordedOp::Kind::kKernel || room.max_operands < kAttentionOutKernels[0][0].operands.size()) {
      return std::nullopt;
    }
    const std::optional<size_t> type = index_in(kAttentionKernels, attention);
    const std::optional<Product> product = type.has_value() ? Product::of(second) : std::nullopt;
    if (!product.has_value() || product->format >= std::size(kProductKernels)) return std::nullopt;
    const uint32_t head_dim = argument(attention, 5), rows = attention.grid.x, k = attention.grid.y * head_dim;
    const BufferRange& out = attention.operands[attention.operands.size() - 1];
    const bool is_of_out = second.operands[0] == out && argument(second, 3) == argument(attention, 2) &&
                           argument(second, 2) == k && product->rows == rows;
    const bool has_activation = argument(second, 6) != 0;
    if (!is_of_out || has_activation || head_dim % kBlock != 0 || k < kParts * kBlock) return std::nullopt;
    const uint64_t sums = uint64_t{rows} * (k / kBlock) * second.grid.x * kPanel;
    if (rows > room.arrivals.size / kWord || sums > room.sums.size / kWord || sums > UINT32_MAX) return std::nullopt;
    const bool is_free = std::none_of(attention.operands.begin(), attention.operands.end(),
                                      [&](const BufferRange& operand) { return overlap(operand, product->y); });
    if (!is_free || overlap(second.operands[1], product->y)) return std::nullopt;
    return AttentionOut{attention, *product, *type};
  }

  RecordedOp fused(const NormBehind& norm, const FusionRoom& room) const {
    const RecordedOp& second = product.op;
    std::array<uint32_t, kMaxArgumentBytes / kWord> words{};
    size_t count = attention.arguments.size() / kWord;
    for (size_t i = 0; i < count; ++i) words[i] = argument(attention, i);
    const uint32_t adds = argument(second, 7);
    for (const uint32_t word : {product.n, product.y_stride, adds, norm.kind, norm.stride, norm.epsilon}) {
      words[count++] = word;
    }
    const uint64_t sums = uint64_t{product.rows} * (argument(second, 2) / kBlock) * second.grid.x * kPanel;
    const BufferRange& weights = second.operands[1];  // also bound for what is not there, and not read
    std::vector<BufferRange> operands(attention.operands.begin(), attention.operands.end());
    operands.insert(operands.end(), {weights, (adds & 1) != 0 ? second.operands[2] : weights, product.y});
    if (norm.kind == 0) operands.insert(operands.end(), {weights, weights, product.y});
    if (norm.kind != 0) operands.insert(operands.end(), {norm.gain, norm.shift, norm.normed});
    operands.push_back({room.sums.buffer, room.sums.begin, sums * kWord});
    operands.push_back({room.arrivals.buffer, room.arrivals.begin, product.rows * kWord});
    return {.kind = RecordedOp::Kind::kKernel,
            .kernel = &kAttentionOutKernels[type][product.format],
            .arguments = Few<std::byte, kMaxArgumentBytes>(std::as_bytes(std::span(words).first(count))),
            .operands = Few<BufferRange, kMaxOperands>(operands),
            .grid = attention.grid};
  }
};

}  // namespace

std::vector<RecordedOp> fuse_ops(std::span<const RecordedOp> ops, const FusionRoom& room) {
  std::vector<RecordedOp> result;
  result.reserve(ops.size());
  while (!ops.empty()) {
    size_t count = 1;
    std::optional<RecordedOp> op;
    if (ops.size() > 1) {
      if (const auto attention = AttentionOut::of(ops[0], ops[1], room); attention.has_value()) {
        std::optional<NormBehind> norm;
        if (ops.size() > 2) norm = norm_behind(ops[0], attention->product, ops[2]);
        op = attention->fused(norm.value_or(NormBehind()), room);
        count = norm.has_value() ? 3 : 2;
      } else if (op = with_tail(ops[0], ops[1], room); op.has_value()) {
        count = 2;
      }
    }
    result.push_back(op.has_value() ? *op : ops[0]);
    ops = ops.subspan(count);
  }
  return result;
}

}  // namespace transept
