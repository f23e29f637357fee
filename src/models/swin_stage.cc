#include "models/swin_stage.h"

#include <algorithm>
#include <cmath>

namespace transept {
namespace {

// Every other block attends in windows that are moved by half of their side.
WindowAttention::Options attention_options(const SwinStage::Options& options, const std::string& prefix,
                                           int64_t index) {
  WindowAttention::Options out;
  AttentionOptions& attention = out.attention;
  attention.prefix = prefix + ".attention";
  attention.q = "self.query";
  attention.k = "self.key";
  attention.v = "self.value";
  attention.out = "output.dense";
  attention.dim = options.dim;
  attention.num_heads = options.num_heads;
  attention.scale = 1.0f / std::sqrt(static_cast<float>(attention.width_of_head()));
  attention.qkv_has_bias = options.qkv_has_bias;
  out.bias_table = prefix + ".attention.self.relative_position_bias_table";
  out.side = options.window_side;
  out.shift = index % 2 == 0 ? 0 : options.window_side / 2;
  out.norm = prefix + ".layernorm_before";
  out.norm_options.epsilon = options.epsilon;
  return out;
}

}  // namespace

StatusOr<SwinStage::Block> SwinStage::load_block(WeightMap& weights, const Options& options, int64_t index,
                                                 const ModelLoadOptions& load_options) {
  const std::string prefix = str_cat(options.prefix, ".blocks.", index);
  const PackOptions& packing = load_options.packing;
  ASSIGN_OR_RETURN(WindowAttention attention,
                   WindowAttention::load(weights, attention_options(options, prefix, index), packing));
  ASSIGN_OR_RETURN(Norm norm,
                   Norm::load(weights, prefix + ".layernorm_after", options.dim, {.epsilon = options.epsilon}));
  const FeedForward::Options sizes{.up = prefix + ".intermediate.dense",
                                   .down = prefix + ".output.dense",
                                   .dim = options.dim,
                                   .hidden_dim = options.hidden_dim,
                                   .activation = options.activation};
  ASSIGN_OR_RETURN(FeedForward feed_forward, FeedForward::load(weights, sizes, packing));
  // A buffer that older files have: what it says follows from the window's side.
  weights.ignore(prefix + ".attention.self.relative_position_index");
  return Block{std::move(attention), Residual{std::move(norm), NormPlace::kBefore}, std::move(feed_forward)};
}

StatusOr<SwinStage> SwinStage::load(WeightMap& weights, const Options& options, const ModelLoadOptions& load_options) {
  SwinStage stage(options.dim, load_options.attention);
  for (int64_t i = 0; i < options.num_blocks; ++i) {
    ASSIGN_OR_RETURN(Block block, load_block(weights, options, i, load_options));
    std::string why;
    if (!load_options.attention.supports(block.attention.heads().wanted(), &why)) {
      return unimplemented("attention backend ", load_options.attention.name(), ": ", why);
    }
    stage.blocks_.push_back(std::move(block));
  }
  if (options.merges) {
    ASSIGN_OR_RETURN(stage.merging_,
                     PatchMerging::load(weights, options.prefix + ".downsample", options.dim, load_options.packing));
  }
  return stage;
}

void SwinStage::forward(Context& context, DType kv_dtype, const MapSize& map, const TensorView& x) const {
  const int64_t at_once = WindowAttention::rows_at_once(dim_);
  for (const Block& block : blocks_) {
    block.attention.forward(context, *backend_, kv_dtype, map, x);
    // A part of the rows at a time: the norm's result is not a second map.
    for (int64_t begin = 0; begin < x.dim(0); begin += at_once) {
      const TensorView rows = x.rows(begin, std::min(begin + at_once, x.dim(0)));
      block.sum.run(context, rows, [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
        block.feed_forward.forward(context, in, residual, out);
      });
    }
  }
}

void SwinStage::merge(Context& context, const MapSize& map, const TensorView& x, const TensorView& y) const {
  CHECK(merging_.has_value(), "no stage is behind the last");
  merging_->forward(context, map, x, y);
}

}  // namespace transept
