// Self-attention between the channels of a map's rows, in groups (Ding et al.: DaViT, 2022; transformers'
// Florence2VisionChannelAttention): a channel's query, key and value are its column of all rows, and scores are scaled
// by the number of rows. Rows go through the projections some at a time, which bounds step memory. Immutable after
// loading, so thread-safe; owned by the model.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "layers/linear.h"
#include "layers/norm.h"

namespace transept {

class ChannelAttention final {
 public:
  struct Options {
    std::string qkv, out;  // prefixes of the projections: `qkv`.weight is [3 dim, dim]
    std::string norm;      // in front of the attention
    int64_t dim = 0, num_groups = 0;
    bool qkv_has_bias = true;
  };
  // Errors: those of Linear::load and Norm::load.
  static StatusOr<ChannelAttention> load(WeightMap& weights, const Options& options, const PackOptions& packing);

  // x += attention(norm(x)), in place. x: [rows, dim] float32, dense; values: as x, other memory, overwritten.
  void forward(Context& context, const TensorView& x, const TensorView& values) const;

 private:
  ChannelAttention(Linear qkv, Linear out, Norm norm, int64_t num_groups)
      : qkv_(std::move(qkv)), out_(std::move(out)), norm_(std::move(norm)), num_groups_(num_groups) {}

  void add_rows_to(Context& context, const TensorView& x, const TensorView& sums, const TensorView& values) const;

  Linear qkv_, out_;
  Norm norm_;
  int64_t num_groups_;
};

}  // namespace transept
