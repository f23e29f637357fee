#include "models/davit_stage.h"

#include <algorithm>
#include <cmath>

namespace transept {
namespace {

// Microsoft's files name parts by the wrappers that its code puts around them.
std::string attention_prefix(const std::string& block, const char* attention, bool is_original) {
  return str_cat(block, ".", attention, is_original ? ".fn" : "");
}
std::string attention_norm(const std::string& block, const char* attention, bool is_original) {
  return is_original ? str_cat(block, ".", attention, ".norm") : block + ".norm1";
}

}  // namespace

StatusOr<DavitStage::Frame> DavitStage::load_frame(WeightMap& weights, const std::string& prefix,
                                                   const DavitConfig& config, const DavitConfig::Stage& sizes,
                                                   const PackOptions& packing) {
  const bool is_original = config.has_original_names;
  const char* const conv = is_original ? ".fn.dw" : "";
  ASSIGN_OR_RETURN(DepthwiseConv first, DepthwiseConv::load(weights, str_cat(prefix, ".conv1", conv), sizes.dim));
  ASSIGN_OR_RETURN(DepthwiseConv second, DepthwiseConv::load(weights, str_cat(prefix, ".conv2", conv), sizes.dim));
  ASSIGN_OR_RETURN(Norm norm, Norm::load(weights, prefix + (is_original ? ".ffn.norm" : ".norm2"), sizes.dim, {}));
  const std::string layers = prefix + (is_original ? ".ffn.fn.net" : ".ffn");
  const FeedForward::Options options{.up = layers + ".fc1",
                                     .down = layers + ".fc2",
                                     .dim = sizes.dim,
                                     .hidden_dim = sizes.hidden_dim,
                                     .activation = config.activation};
  ASSIGN_OR_RETURN(FeedForward feed_forward, FeedForward::load(weights, options, packing));
  return Frame{std::move(first), std::move(second), Residual{std::move(norm), NormPlace::kBefore},
               std::move(feed_forward)};
}

StatusOr<DavitStage::Block> DavitStage::load_block(WeightMap& weights, const std::string& prefix,
                                                   const DavitConfig& config, const DavitConfig::Stage& sizes,
                                                   const PackOptions& packing) {
  const bool is_original = config.has_original_names;
  const std::string spatial = prefix + ".spatial_block", channel = prefix + ".channel_block";
  WindowAttention::Options windows;
  windows.attention.prefix = attention_prefix(spatial, "window_attn", is_original);
  windows.attention.fused = "qkv";
  windows.attention.out = "proj";
  windows.attention.dim = sizes.dim;
  windows.attention.num_heads = sizes.num_heads;
  windows.attention.scale = 1.0f / std::sqrt(static_cast<float>(windows.attention.width_of_head()));
  windows.attention.qkv_has_bias = config.qkv_bias;
  windows.side = config.window_side;
  windows.small_maps = SmallMaps::kFillUp;
  windows.norm = attention_norm(spatial, "window_attn", is_original);
  const std::string channels = attention_prefix(channel, "channel_attn", is_original);
  const ChannelAttention::Options groups{.qkv = channels + ".qkv",
                                         .out = channels + ".proj",
                                         .norm = attention_norm(channel, "channel_attn", is_original),
                                         .dim = sizes.dim,
                                         .num_groups = sizes.num_groups,
                                         .qkv_has_bias = config.qkv_bias};
  ASSIGN_OR_RETURN(Frame spatial_frame, load_frame(weights, spatial, config, sizes, packing));
  ASSIGN_OR_RETURN(WindowAttention window_attention, WindowAttention::load(weights, windows, packing));
  ASSIGN_OR_RETURN(Frame channel_frame, load_frame(weights, channel, config, sizes, packing));
  ASSIGN_OR_RETURN(ChannelAttention channel_attention, ChannelAttention::load(weights, groups, packing));
  return Block{std::move(spatial_frame), std::move(window_attention), std::move(channel_frame),
               std::move(channel_attention)};
}

StatusOr<DavitStage> DavitStage::load(WeightMap& weights, const std::string& prefix, const DavitConfig& config,
                                      size_t index, const ModelLoadOptions& options) {
  const DavitConfig::Stage& sizes = config.stages[index];
  const std::string embed = str_cat(prefix, "convs.", index);
  const MapConvolution::Options conv_options{.prefix = embed + (config.has_original_names ? ".proj" : ".conv"),
                                             .channels = index == 0 ? 3 : config.stages[index - 1].dim,
                                             .dim = sizes.dim,
                                             .shape = sizes.conv};
  ASSIGN_OR_RETURN(MapConvolution conv, MapConvolution::load(weights, conv_options, options.packing));
  const int64_t normed = sizes.norm_is_first ? conv_options.channels : sizes.dim;
  ASSIGN_OR_RETURN(Norm norm, Norm::load(weights, embed + ".norm", normed, {}));
  DavitStage stage(std::move(conv), std::move(norm), sizes, options.attention);
  for (int64_t i = 0; i < sizes.num_blocks; ++i) {
    const std::string name = str_cat(prefix, "blocks.", index, ".", i);
    ASSIGN_OR_RETURN(Block block, load_block(weights, name, config, sizes, options.packing));
    std::string why;
    if (!options.attention.supports(block.window_attention.heads().wanted(), &why)) {
      return unimplemented("attention backend ", options.attention.name(), ": ", why);
    }
    stage.blocks_.push_back(std::move(block));
  }
  return stage;
}

void DavitStage::embed(Context& context, const PictureView& picture, const TensorView& y) const {
  CHECK(!norm_is_first_, "a picture has no rows to normalise");
  conv_.forward(context, picture, y);
  norm_.forward(context, y, y);
}

void DavitStage::embed(Context& context, const MapSize& map, const TensorView& x, const TensorView& y) const {
  if (norm_is_first_) norm_.forward(context, x, x);
  conv_.forward(context, map, x, y);
  if (!norm_is_first_) norm_.forward(context, y, y);
}

// A part of the rows at a time: the norm's result is not a second map.
void DavitStage::feed_forward(Context& context, const Frame& frame, const TensorView& x) const {
  const int64_t at_once = WindowAttention::rows_at_once(dim_);
  for (int64_t begin = 0; begin < x.dim(0); begin += at_once) {
    const TensorView rows = x.rows(begin, std::min(begin + at_once, x.dim(0)));
    frame.sum.run(context, rows, [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
      frame.feed_forward.forward(context, in, residual, out);
    });
  }
}

void DavitStage::forward(Context& context, DType kv_dtype, const MapSize& map, const TensorView& x,
                         const TensorView& other) const {
  for (const Block& block : blocks_) {
    block.spatial.before_attention.forward(context, map, x, other);
    block.window_attention.forward(context, *backend_, kv_dtype, map, other);
    block.spatial.before_feed_forward.forward(context, map, other, x);
    feed_forward(context, block.spatial, x);
    block.channel.before_attention.forward(context, map, x, other);
    block.channel_attention.forward(context, other, x);
    block.channel.before_feed_forward.forward(context, map, other, x);
    feed_forward(context, block.channel, x);
  }
}

}  // namespace transept
