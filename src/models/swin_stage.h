// A stage of a Swin tower (Liu et al.: Swin Transformer, 2021; transformers' DonutSwinStage): blocks over a map of
// rows, and behind them, but for the last stage, the map of the next one. Immutable after loading, so thread-safe;
// owned by the model. Borrows the attention backend, which outlives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "layers/feed_forward.h"
#include "layers/patch_merging.h"
#include "layers/residual.h"
#include "layers/window_attention.h"
#include "models/model.h"

namespace transept {

class SwinStage final {
 public:
  struct Options {
    std::string prefix;  // "encoder.encoder.layers.0"
    int64_t dim = 0, hidden_dim = 0, num_heads = 0;
    int64_t num_blocks = 0;
    int64_t window_side = 0;
    bool qkv_has_bias = true;
    Activation activation = Activation::kGelu;
    float epsilon = 1e-5f;
    bool merges = false;  // there is a stage behind it
  };
  // Errors: those of its layers; kUnimplemented for heads that the attention backend does not support.
  static StatusOr<SwinStage> load(WeightMap& weights, const Options& options, const ModelLoadOptions& load_options);

  int64_t dim() const { return dim_; }

  // Runs the blocks on x [map.num_rows(), dim] float32, dense, in place. kv_dtype: AttentionMetadata's of the encoder.
  // A dry run takes the memory of any map with so many rows.
  void forward(Context& context, DType kv_dtype, const MapSize& map, const TensorView& x) const;

  // The rows of the next stage: PatchMerging::forward(). REQUIRES: Options::merges.
  void merge(Context& context, const MapSize& map, const TensorView& x, const TensorView& y) const;

 private:
  struct Block {
    WindowAttention attention;
    Residual sum;
    FeedForward feed_forward;
  };

  SwinStage(int64_t dim, const AttentionBackend& attention) : dim_(dim), backend_(&attention) {}

  static StatusOr<Block> load_block(WeightMap& weights, const Options& options, int64_t index,
                                    const ModelLoadOptions& load_options);

  int64_t dim_;
  const AttentionBackend* backend_;
  std::vector<Block> blocks_;
  std::optional<PatchMerging> merging_;
};

}  // namespace transept
