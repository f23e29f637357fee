#include "layers/channel_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "ops/channels.h"
#include "ops/rows.h"

namespace transept {
namespace {

// 2 MiB of a tensor as wide as the rows.
constexpr int64_t kElementsAtOnce = 1 << 19;

}  // namespace

StatusOr<ChannelAttention> ChannelAttention::load(WeightMap& weights, const Options& options,
                                                  const PackOptions& packing) {
  CHECK(options.num_groups > 0 && options.dim % options.num_groups == 0);
  const LinearSource qkv_source{options.qkv + ".weight", options.qkv_has_bias ? options.qkv + ".bias" : "",
                                3 * options.dim};
  ASSIGN_OR_RETURN(Linear qkv, Linear::load(weights, {{qkv_source}, options.dim}, packing));
  const LinearSource out_source{options.out + ".weight", options.out + ".bias", options.dim};
  ASSIGN_OR_RETURN(Linear out, Linear::load(weights, {{out_source}, options.dim}, packing));
  ASSIGN_OR_RETURN(Norm norm, Norm::load(weights, options.norm, options.dim, {}));
  return ChannelAttention(std::move(qkv), std::move(out), std::move(norm), options.num_groups);
}

// Adds what some rows bring to the scores, and keeps their values.
void ChannelAttention::add_rows_to(Context& context, const TensorView& x, const TensorView& sums,
                                   const TensorView& values) const {
  const Arena::Scope scope(context.arena);
  const int64_t rows = x.dim(0), dim = x.dim(1);
  const TensorView normed = context.arena.tensor(DType::kFloat32, {rows, dim});
  const TensorView qkv = context.arena.tensor(DType::kFloat32, {rows, 3 * dim});
  norm_.forward(context, x, normed);
  qkv_.forward(context, normed, {}, qkv);
  add_channel_products(context, qkv.columns(0, dim), qkv.columns(dim, 2 * dim), sums);
  std::vector<int32_t> all(static_cast<size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  gather_rows(context, qkv.columns(2 * dim, 3 * dim), all, values);
}

void ChannelAttention::forward(Context& context, const TensorView& x, const TensorView& values) const {
  const int64_t rows = x.dim(0), dim = x.dim(1), at_once = std::max<int64_t>(1, kElementsAtOnce / dim);
  CHECK(dim == out_.out_features() && values.dim(0) == rows && values.dim(1) == dim);
  const Arena::Scope scope(context.arena);
  const TensorView sums = context.arena.tensor(DType::kFloat32, {dim, dim / num_groups_});
  fill_zero(context, sums);
  for (int64_t begin = 0; begin < rows; begin += at_once) {
    const int64_t end = std::min(begin + at_once, rows);
    add_rows_to(context, x.rows(begin, end), sums, values.rows(begin, end));
  }
  softmax_rows(context, 1.0f / std::sqrt(static_cast<float>(rows)), sums);
  for (int64_t begin = 0; begin < rows; begin += at_once) {
    const Arena::Scope part(context.arena);
    const int64_t end = std::min(begin + at_once, rows);
    const TensorView mixed = context.arena.tensor(DType::kFloat32, {end - begin, dim}), some = x.rows(begin, end);
    mix_channels(context, values.rows(begin, end), sums, mixed);
    out_.forward(context, mixed, {.residual = some}, some);
  }
}

}  // namespace transept
