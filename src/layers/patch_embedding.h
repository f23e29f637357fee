// torch.nn.Conv2d over patches of a picture that do not overlap (its stride is its kernel), with weights from a
// checkpoint: a linear layer over the pixels of a patch. The first layer of towers. Immutable after loading, so
// thread-safe; owned by the model.
//
// A kernel that overlaps its neighbours, or that reads rows of a layer before it (DaViT's), differs in how rows of
// patches are made (gather_patch): the product is the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "layers/linear.h"
#include "tensor/context.h"

namespace transept {

// Planar pixels: [channels, height, width]. A view of the host's memory.
struct PictureView {
  std::span<const float> values;
  int64_t height = 0, width = 0;
};

struct PatchGrid {
  int64_t rows = 0, columns = 0;

  int64_t size() const { return rows * columns; }
};

class PatchEmbedding final {
 public:
  struct Options {
    std::string prefix;  // `prefix`.weight: [dim, channels, height, width]; `prefix`.bias: [dim]
    int64_t channels = 3, dim = 0;
    int64_t height = 0, width = 0;  // of a patch
    // What is left at the right and below where patches do not divide a picture: patches of their own that go on with
    // zeros (Swin), or nothing.
    bool pads = false;
    bool has_bias = true;
  };
  // Errors: those of Linear::load.
  static StatusOr<PatchEmbedding> load(WeightMap& weights, const Options& options, const PackOptions& packing);

  // The patches of a picture, which are rows of the result: row by row of the picture.
  PatchGrid grid(int64_t height, int64_t width) const;

  // y = conv(picture) + bias + residual. y, residual (rank 0: none; may be y): [grid(height, width).size(), dim]
  // float32. A dry run does not read the picture. Takes at most kPatchesAtOnce patches at a time, which bounds the step
  // memory of pixels.
  void forward(Context& context, const PictureView& picture, const TensorView& residual, const TensorView& y) const;
  static constexpr int64_t kPatchesAtOnce = 1024;

 private:
  PatchEmbedding(Linear pixels, const Options& options)
      : pixels_(std::move(pixels)),
        channels_(options.channels),
        height_(options.height),
        width_(options.width),
        pads_(options.pads) {}

  // The pixels of the patch at (top, left), by channel, row and column: zeros beyond the picture.
  void gather_patch(const PictureView& picture, int64_t top, int64_t left, std::span<float> row) const;

  Linear pixels_;  // from channels * height * width
  int64_t channels_, height_, width_;
  bool pads_;
};

}  // namespace transept
