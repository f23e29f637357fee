// Self-attention of a map's rows in windows, with a learnt bias by relative position (Liu et al.: Swin Transformer,
// 2021; transformers' DonutSwinSelfAttention and DonutSwinLayer) or without one (Ding et al.: DaViT, 2022;
// transformers' Florence2VisionWindowAttention). Immutable after loading, so thread-safe; owned by the model.
//
// Windows are sequences of an encoder's attention, and all of one kind (WindowPartition) have one bias, which is made
// in step memory with a stride of 0 over them. Places outside of the map are zeros behind the norm: they are attended
// to, with the projections' biases as keys and values. Windows are computed some at a time, which bounds step memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "layers/attention.h"
#include "layers/norm.h"
#include "layers/window_partition.h"

namespace transept {

class WindowAttention final {
 public:
  struct Options {
    AttentionOptions attention;
    // [(2 side - 1)^2, num_heads]: row (y + side - 1) (2 side - 1) + x + side - 1 is of keys y rows above and x columns
    // left of their query. "": there is none. REQUIRES of windows that are shifted or shrink: a table.
    std::string bias_table;
    int64_t side = 0;   // of a window; a smaller one reads the middle of the table
    int64_t shift = 0;  // in rows and in columns
    SmallMaps small_maps = SmallMaps::kShrinkWindows;
    std::string norm;  // in front of the attention
    NormOptions norm_options = {};
  };
  // Errors: those of SelfAttention::load, Norm::load and WeightMap::get.
  static StatusOr<WindowAttention> load(WeightMap& weights, const Options& options, const PackOptions& packing);

  // x += attention(norm(x)), in place. x: [map.num_rows(), dim] float32, dense. kv_dtype: AttentionMetadata's. A dry
  // run takes the memory of any map with so many rows.
  void forward(Context& context, const AttentionBackend& backend, DType kv_dtype, const MapSize& map,
               const TensorView& x) const;

  const AttentionHeads& heads() const { return attention_.heads(); }

  // Rows of such a width that are computed at once: enough for products to be fast, few enough for little memory.
  static int64_t rows_at_once(int64_t dim);
  // Bytes of the bias of one kind of windows.
  static int64_t bias_bytes(int64_t side, int64_t num_heads);

 private:
  WindowAttention(SelfAttention attention, Norm norm, std::vector<float> table, const Options& options)
      : attention_(std::move(attention)),
        norm_(std::move(norm)),
        table_(std::move(table)),
        dim_(options.attention.dim),
        side_(options.side),
        shift_(options.shift),
        small_maps_(options.small_maps) {}

  class Windows;

  void measure(Context& context, const AttentionBackend& backend, DType kv_dtype, int64_t num_rows,
               const TensorView& x) const;
  void measure_windows(Context& context, const AttentionBackend& backend, DType kv_dtype, int64_t side,
                       int64_t num_windows, const TensorView& x) const;
  TensorView make_bias(Context& context, const WindowPartition& windows, WindowKind kind) const;
  void attend(Context& context, const AttentionInputs& inputs, std::span<const int32_t> rows, bool any_is_missing,
              const TensorView& x) const;
  int64_t windows_at_once(int64_t side) const;

  SelfAttention attention_;
  Norm norm_;
  std::vector<float> table_;  // [this rank's heads, (2 side - 1)^2], the host's; empty: no bias
  int64_t dim_, side_, shift_;
  SmallMaps small_maps_;
};

}  // namespace transept
