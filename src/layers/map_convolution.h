// torch.nn.Conv2d of a square kernel, stride and padding, over a picture or over the rows of a map, with weights from a
// checkpoint: a linear layer over the places under a kernel, which are zeros beyond the map. DaViT's conv embeddings
// (Ding et al. 2022; transformers' Florence2VisionConvEmbed). A kernel that is its stride is PatchEmbedding.
// Immutable after loading, so thread-safe; owned by the model.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"
#include "core/picture_convs.h"
#include "layers/linear.h"
#include "layers/patch_embedding.h"
#include "layers/window_partition.h"

namespace transept {

class MapConvolution final {
 public:
  struct Options {
    std::string prefix;  // `prefix`.weight: [dim, channels, kernel, kernel]; `prefix`.bias: [dim]
    int64_t channels = 3, dim = 0;
    PictureConv shape;
  };
  // Errors: those of Linear::load.
  static StatusOr<MapConvolution> load(WeightMap& weights, const Options& options, const PackOptions& packing);

  MapSize output(const MapSize& map) const { return {shape_.output(map.height), shape_.output(map.width)}; }

  // y = conv(x) + bias. x: [map.num_rows(), channels] float32; y: [output(map).num_rows(), dim] float32, not the same
  // memory. A dry run reads no sizes but y's.
  void forward(Context& context, const MapSize& map, const TensorView& x, const TensorView& y) const;

  // The same of a picture's planes.
  void forward(Context& context, const PictureView& picture, const TensorView& y) const;

 private:
  MapConvolution(Linear places, const Options& options)
      : places_(std::move(places)), channels_(options.channels), shape_(options.shape) {}

  int64_t rows_at_once() const;
  // The place of the map that is under tap `tap` of the kernel for row `row` of the result; -1: beyond the map.
  int64_t place_of(const MapSize& map, int64_t row, int64_t tap) const;
  void fill_row(const PictureView& picture, int64_t row, std::span<float> out) const;

  Linear places_;  // from kernel * kernel * channels, by tap, then by channel
  int64_t channels_;
  PictureConv shape_;
};

}  // namespace transept
