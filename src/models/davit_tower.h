// DaViT with Florence-2's projector (Xiao et al. 2023), the tower that makes the rows of a picture among an encoder's:
// stages of blocks, positions of rows and columns, the mean of all rows in front of them, a projection and its norm.
// Checkpoints: florence-community/Florence-2-*, microsoft/Florence-2-*. Source: transformers,
// models/florence2/modeling_florence2.py (Florence2VisionBackbone, Florence2MultiModalProjector).
// Immutable after loading, so thread-safe; owned by the model's encoders.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/davit_stage.h"

namespace transept {

class DavitTower final {
 public:
  // Reads every tensor of the tower and the projector: "vision_tower.", "multi_modal_projector.", or Microsoft's names.
  // Errors: those of DavitStage::load; a missing or misshapen tensor, by name.
  static StatusOr<DavitTower> load(WeightMap& weights, const DavitConfig& config, const ModelLoadOptions& options);

  // Of a model's part without the tower: its tensors are known and not read.
  static void ignore(WeightMap& weights);

  // The rows that a picture of such a shape becomes; 0: the tower takes no such picture. shape: [3, height, width].
  static int32_t num_rows(const DavitConfig& config, std::span<const int64_t> shape);

  int64_t width() const { return config_.width; }

  // y = the rows of a picture. y: [num_rows(picture's), width()] float32. kv_dtype: AttentionMetadata's of the encoder.
  void forward(Context& context, DType kv_dtype, const FeaturesView& picture, const TensorView& y) const;

  // Takes the memory of any picture whose first map has at most `widest_rows` rows, and which becomes y's rows or
  // fewer.
  void measure(Context& context, DType kv_dtype, int64_t widest_rows, const TensorView& y) const;

 private:
  DavitTower(const DavitConfig& config, std::vector<DavitStage> stages, Linear projection, Norm norm)
      : config_(config), stages_(std::move(stages)), projection_(std::move(projection)), norm_(std::move(norm)) {}

  Status load_positions(WeightMap& weights);
  void run(Context& context, DType kv_dtype, const PictureView& picture, std::span<const MapSize> maps,
           const TensorView& y) const;
  void project(Context& context, const MapSize& map, const TensorView& x, const TensorView& y) const;

  DavitConfig config_;
  std::vector<DavitStage> stages_;
  Linear projection_;
  Norm norm_;
  // The host's. columns_: [max_side, dim - dim / 2], and rows_: [max_side, dim / 2], side by side; moment_: [dim].
  std::vector<float> columns_, rows_, moment_;
};

}  // namespace transept
