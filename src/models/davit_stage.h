// A stage of DaViT's tower (Ding et al.: DaViT, Dual Attention Vision Transformers, 2022; transformers'
// Florence2VisionBlock): the convolution that makes its map, and blocks, each of attention in windows and of attention
// between channels, with depthwise convolutions and feed-forwards between. Immutable after loading, so thread-safe;
// owned by the model. Borrows the attention backend, which outlives it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "layers/channel_attention.h"
#include "layers/depthwise_conv.h"
#include "layers/feed_forward.h"
#include "layers/map_convolution.h"
#include "layers/residual.h"
#include "layers/window_attention.h"
#include "models/davit_config.h"
#include "models/model.h"

namespace transept {

class DavitStage final {
 public:
  // Reads stage `index` of the tower whose names begin with `prefix` ("vision_tower."). Errors: those of its layers;
  // kUnimplemented for heads that the attention backend does not support.
  static StatusOr<DavitStage> load(WeightMap& weights, const std::string& prefix, const DavitConfig& config,
                                   size_t index, const ModelLoadOptions& options);

  int64_t dim() const { return dim_; }

  // y = conv_embed(x): y [output rows, dim] float32, dense. A norm in front of the convolution overwrites x. A dry run
  // reads no sizes but y's.
  void embed(Context& context, const PictureView& picture, const TensorView& y) const;
  void embed(Context& context, const MapSize& map, const TensorView& x, const TensorView& y) const;

  // Runs the blocks on x [map.num_rows(), dim] float32, dense, in place; other: as x, other memory, overwritten.
  // kv_dtype: AttentionMetadata's of the encoder. A dry run takes the memory of any map with so many rows.
  void forward(Context& context, DType kv_dtype, const MapSize& map, const TensorView& x,
               const TensorView& other) const;

 private:
  // What a block of either kind has around its attention.
  struct Frame {
    DepthwiseConv before_attention, before_feed_forward;
    Residual sum;
    FeedForward feed_forward;
  };
  struct Block {
    Frame spatial;
    WindowAttention window_attention;
    Frame channel;
    ChannelAttention channel_attention;
  };

  DavitStage(MapConvolution conv, Norm norm, const DavitConfig::Stage& sizes, const AttentionBackend& attention)
      : conv_(std::move(conv)),
        norm_(std::move(norm)),
        norm_is_first_(sizes.norm_is_first),
        dim_(sizes.dim),
        backend_(&attention) {}

  static StatusOr<Frame> load_frame(WeightMap& weights, const std::string& prefix, const DavitConfig& config,
                                    const DavitConfig::Stage& sizes, const PackOptions& packing);
  static StatusOr<Block> load_block(WeightMap& weights, const std::string& prefix, const DavitConfig& config,
                                    const DavitConfig::Stage& sizes, const PackOptions& packing);

  void feed_forward(Context& context, const Frame& frame, const TensorView& x) const;

  MapConvolution conv_;
  Norm norm_;
  bool norm_is_first_;
  int64_t dim_;
  const AttentionBackend* backend_;
  std::vector<Block> blocks_;
};

}  // namespace transept
