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
};

// What a product does behind its rows: arguments, and operands behind y. A rounding behind it may take `made`.
struct Tail {
  ProductTail kind;
  Few<uint32_t, 8> arguments;
  Few<BufferRange, 4> operands;
  BufferRange made;
  uint32_t made_stride = 0, made_columns = 0;
};

// A rounding of rows behind a product or attention (record_round_rows()).
struct Rounding {
  uint32_t columns, stride, inputs;
  BufferRange x, q, codes;

  // Behind the first `count` ops, of all rows that they make, into memory that none of their operands has. None: it is
  // no rounding, or of others.
  static std::optional<Rounding> of(std::span<const RecordedOp> ops, size_t count, uint32_t rows,
                                    const BufferRange& made, uint32_t stride, uint32_t columns) {
    if (ops.size() <= count) return std::nullopt;
    const RecordedOp& op = ops[count];
    if (op.kernel != &kRoundRowsKernel || op.grid.x != rows) return std::nullopt;
    Rounding rounding{argument(op, 0), argument(op, 1), argument(op, 2),
                      op.operands[0],  op.operands[1],  op.operands[2]};
    if (rounding.x != made || rounding.columns != columns || rounding.stride != stride) return std::nullopt;
    for (const RecordedOp& before : ops.first(count)) {
      for (const BufferRange& operand : before.operands) {
        if (overlap(operand, rounding.q) || overlap(operand, rounding.codes)) return std::nullopt;
      }
    }
    return rounding;
  }
};

RecordedOp with(const Product& product, const Tail* tail, const Rounding* rounding, const BufferRange& arrivals) {
  const RecordedOp& op = product.op;
  std::array<uint32_t, kMaxArgumentBytes / kWord> words{};
  size_t count = 0;
  for (const size_t i : {0, 1, 2, 3, 4, 6, 7}) words[count++] = argument(op, i);
  std::vector<BufferRange> operands(op.operands.begin(), op.operands.end() - 2);
  operands.push_back(product.y);
  const KernelSpec* kernel = nullptr;
  if (tail != nullptr) {
    for (const uint32_t value : tail->arguments) words[count++] = value;
    operands.insert(operands.end(), tail->operands.begin(), tail->operands.end());
    kernel = &kProductTailKernels[product.format][static_cast<size_t>(tail->kind)];
  }
  if (rounding != nullptr) {
    words[count++] = rounding->inputs;
    operands.insert(operands.end(), {rounding->q, rounding->codes});
    const RoundedTail kind = tail == nullptr                         ? RoundedTail::kNone
                             : tail->kind == ProductTail::kLayerNorm ? RoundedTail::kLayerNorm
                             : tail->kind == ProductTail::kRmsNorm   ? RoundedTail::kRmsNorm
                                                                     : RoundedTail::kGate;
    kernel = &kProductRoundKernels[static_cast<size_t>(kind)];
  }
  operands.push_back({arrivals.buffer, arrivals.begin, op.grid.y * kWord});
  return {.kind = RecordedOp::Kind::kKernel,
          .kernel = kernel,
          .arguments = Few<std::byte, kMaxArgumentBytes>(std::as_bytes(std::span(words).first(count))),
          .operands = Few<BufferRange, kMaxOperands>(operands),
          .grid = op.grid};
}

std::optional<Tail> norm_of(const Product& product, const RecordedOp& norm) {
  const bool is_layer = norm.kernel == &kLayerNormKernel;
  if (!is_layer && norm.kernel != &kRmsNormKernel) return std::nullopt;
  const BufferRange &gain = norm.operands[1], &normed = norm.operands[norm.operands.size() - 1];
  const uint32_t normed_stride = argument(norm, 2);
  if (product.column_of(norm.operands[0], argument(norm, 1), argument(norm, 0)) != 0u) return std::nullopt;
  if (argument(norm, 0) != product.n || norm.grid.x != product.rows) return std::nullopt;
  const bool is_in_place = normed == product.y && normed_stride == product.y_stride;
  if (!is_in_place && product.touches(normed)) return std::nullopt;
  if (overlap(gain, product.y) || (is_layer && overlap(norm.operands[2], product.y))) return std::nullopt;
  Tail tail{.kind = is_layer ? ProductTail::kLayerNorm : ProductTail::kRmsNorm,
            .arguments = {normed_stride, argument(norm, 3)},
            .operands = {gain, normed},
            .made = normed,
            .made_stride = normed_stride,
            .made_columns = product.n};
  if (is_layer) tail.operands = {gain, norm.operands[2], normed};
  return tail;
}

std::optional<Tail> write_kv_of(const Product& product, const RecordedOp& write) {
  const std::optional<size_t> type = index_in(kWriteKvKernels, write);
  if (!type.has_value()) return std::nullopt;
  const uint32_t head_dim = argument(write, 0), kv_heads = write.grid.y, width = kv_heads * head_dim;
  const std::optional<uint32_t> k_first = product.column_of(write.operands[0], argument(write, 1), width),
                                v_first = product.column_of(write.operands[1], argument(write, 3), width);
  if (!k_first.has_value() || !v_first.has_value() || write.grid.x != product.rows) return std::nullopt;
  if (argument(write, 2) != head_dim || argument(write, 4) != head_dim) return std::nullopt;
  const BufferRange &slots = write.operands[2], &cache = write.operands[3];
  if (product.touches(cache) || overlap(slots, product.y)) return std::nullopt;
  return Tail{
      .kind = static_cast<ProductTail>(static_cast<size_t>(ProductTail::kWriteKv) + *type),
      .arguments = {*k_first, *v_first, kv_heads, head_dim, argument(write, 5), argument(write, 6), argument(write, 7)},
      .operands = {slots, cache},
      .made = {}};
}

std::optional<Tail> gate_of(const Product& product, const RecordedOp& gated) {
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
  return Tail{.kind = ProductTail::kGate,
              .arguments = {width, gate, x, made, argument(gated, 4)},
              .operands = {},
              .made = gated.operands[2],
              .made_stride = product.y_stride,
              .made_columns = width};
}

std::optional<Tail> tail_of(const Product& product, const RecordedOp& op) {
  if (op.kind != RecordedOp::Kind::kKernel) return std::nullopt;
  for (const auto& of : {norm_of, write_kv_of, gate_of}) {
    if (std::optional<Tail> tail = of(product, op); tail.has_value()) return tail;
  }
  return std::nullopt;
}

// A fused op, and of how many ops it is.
struct Fused {
  RecordedOp op;
  size_t count = 0;
};

// REQUIRES: ops are not empty.
std::optional<Fused> with_tail(std::span<const RecordedOp> ops, const FusionRoom& room) {
  const std::optional<Product> product = Product::of(ops[0]);
  if (!product.has_value() || ops[0].grid.y > room.arrivals.size / kWord) return std::nullopt;
  const std::optional<Tail> tail = ops.size() > 1 ? tail_of(*product, ops[1]) : std::nullopt;
  const Tail* const behind = tail.has_value() ? &*tail : nullptr;
  const size_t count = behind != nullptr ? 2 : 1;
  std::optional<Rounding> rounding;
  if (product->format == std::size(kProductKernels)) {  // int8
    rounding = behind == nullptr
                   ? Rounding::of(ops, count, product->rows, product->y, product->y_stride, product->n)
                   : Rounding::of(ops, count, product->rows, behind->made, behind->made_stride, behind->made_columns);
  }
  const auto fits = [&](const RecordedOp& op) { return op.operands.size() <= room.max_operands; };
  if (rounding.has_value()) {
    if (RecordedOp op = with(*product, behind, &*rounding, room.arrivals); fits(op)) return Fused{op, count + 1};
  }
  if (behind == nullptr) return std::nullopt;
  if (RecordedOp op = with(*product, behind, nullptr, room.arrivals); fits(op)) return Fused{op, count};
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
  if (!norm_of(product, norm).has_value()) return std::nullopt;  // what it asks for holds here, too
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

std::optional<Fused> with_product(std::span<const RecordedOp> ops, const FusionRoom& room) {
  if (ops.size() < 2) return std::nullopt;
  const auto attention = AttentionOut::of(ops[0], ops[1], room);
  if (!attention.has_value()) return std::nullopt;
  std::optional<NormBehind> norm;
  if (ops.size() > 2) norm = norm_behind(ops[0], attention->product, ops[2]);
  return Fused{attention->fused(norm.value_or(NormBehind()), room), norm.has_value() ? size_t{3} : size_t{2}};
}

// Attention with the rounding of what it gives.
std::optional<Fused> with_rounding(std::span<const RecordedOp> ops, const FusionRoom& room) {
  const RecordedOp& attention = ops[0];
  if (ops.size() < 2 || attention.kind != RecordedOp::Kind::kKernel) return std::nullopt;
  const std::optional<size_t> type = index_in(kAttentionKernels, attention);
  if (!type.has_value() || attention.grid.x > room.arrivals.size / kWord) return std::nullopt;
  const KernelSpec& kernel = kAttentionRoundKernels[*type];
  const uint32_t head_dim = argument(attention, 5);
  const BufferRange& out = attention.operands[attention.operands.size() - 1];
  const auto rounding =
      Rounding::of(ops, 1, attention.grid.x, out, argument(attention, 2), attention.grid.y * head_dim);
  const bool is_dense = argument(attention, 3) == head_dim;
  if (!rounding.has_value() || !is_dense || kernel.operands.size() > room.max_operands) return std::nullopt;
  std::array<uint32_t, kMaxArgumentBytes / kWord> words{};
  size_t count = attention.arguments.size() / kWord;
  for (size_t i = 0; i < count; ++i) words[i] = argument(attention, i);
  words[count++] = rounding->inputs;
  std::vector<BufferRange> operands(attention.operands.begin(), attention.operands.end());
  operands.insert(operands.end(), {rounding->q, rounding->codes});
  operands.push_back({room.arrivals.buffer, room.arrivals.begin, attention.grid.x * kWord});
  return Fused{{.kind = RecordedOp::Kind::kKernel,
                .kernel = &kernel,
                .arguments = Few<std::byte, kMaxArgumentBytes>(std::as_bytes(std::span(words).first(count))),
                .operands = Few<BufferRange, kMaxOperands>(operands),
                .grid = attention.grid},
               2};
}

}  // namespace

std::vector<RecordedOp> fuse_ops(std::span<const RecordedOp> ops, const FusionRoom& room) {
  std::vector<RecordedOp> result;
  result.reserve(ops.size());
  while (!ops.empty()) {
    std::optional<Fused> fused = with_product(ops, room);
    if (!fused.has_value()) fused = with_rounding(ops, room);
    if (!fused.has_value()) fused = with_tail(ops, room);
    result.push_back(fused.has_value() ? fused->op : ops[0]);
    ops = ops.subspan(fused.has_value() ? fused->count : 1);
  }
  return result;
}

}  // namespace transept
