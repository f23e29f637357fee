#include "layers/patch_embedding.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"
#include "ops/rows.h"

namespace transept {

StatusOr<PatchEmbedding> PatchEmbedding::load(WeightMap& weights, const Options& options, const PackOptions& packing) {
  const LinearSource source{.weight = options.prefix + ".weight",
                            .bias = options.has_bias ? options.prefix + ".bias" : "",
                            .out_features = options.dim,
                            .patch_height = options.height,
                            .patch_width = options.width};
  const int64_t num_pixels = options.channels * options.height * options.width;
  ASSIGN_OR_RETURN(Linear pixels, Linear::load(weights, {{source}, num_pixels, LayerInputs::kConvolution}, packing));
  return PatchEmbedding(std::move(pixels), options);
}

PatchGrid PatchEmbedding::grid(int64_t height, int64_t width) const {
  if (pads_) return {ceil_div(height, height_), ceil_div(width, width_)};
  return {height / height_, width / width_};
}

void PatchEmbedding::forward(Context& context, const PictureView& picture, const TensorView& residual,
                             const TensorView& y) const {
  const PatchGrid whole = grid(picture.height, picture.width);
  if (!context.dry_run) {
    CHECK(std::ssize(picture.values) == channels_ * picture.height * picture.width && whole.size() == y.dim(0),
          "a picture of ", picture.height, " by ", picture.width, " for ", y.dim(0), " patches");
  }
  for (int64_t begin = 0; begin < y.dim(0); begin += kPatchesAtOnce) {
    const int64_t end = std::min(begin + kPatchesAtOnce, y.dim(0));
    const Arena::Scope scope(context.arena);
    const TensorView patches = context.arena.tensor(DType::kFloat32, {end - begin, pixels_.in_features()});
    const auto make_row = [&](int64_t i, std::span<float> row) {
      const int64_t patch = begin + i;
      gather_patch(picture, patch / whole.columns * height_, patch % whole.columns * width_, row);
    };
    write_rows(context, make_row, patches);
    const TensorView added = residual.rank == 0 ? residual : residual.rows(begin, end);
    pixels_.forward(context, patches, {.residual = added}, y.rows(begin, end));
  }
}

void PatchEmbedding::gather_patch(const PictureView& picture, int64_t top, int64_t left, std::span<float> row) const {
  const int64_t num_rows = std::min(height_, picture.height - top);
  const int64_t num_columns = std::min(width_, picture.width - left);
  if (num_rows < height_ || num_columns < width_) std::ranges::fill(row, 0.0f);
  for (int64_t channel = 0; channel < channels_; ++channel) {
    for (int64_t i = 0; i < num_rows; ++i) {
      const float* from = picture.values.data() + (channel * picture.height + top + i) * picture.width + left;
      std::copy_n(from, num_columns, row.data() + (channel * height_ + i) * width_);
    }
  }
}

}  // namespace transept
