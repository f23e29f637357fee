#include "models/patch_input.h"

#include <algorithm>
#include <functional>

namespace transept {
namespace {

// Positions, and the tokens that stand at the first of them.
StatusOr<Embedding> read_table(const PatchInput::Options& options, WeightMap& weights) {
  ASSIGN_OR_RETURN(const WeightView positions,
                   weights.get(options.positions, {1, options.num_positions(), options.dim}));
  std::vector<float> table = to_floats(positions);
  auto row = table.begin();
  for (const std::string& name : options.tokens) {
    ASSIGN_OR_RETURN(const WeightView view, weights.get(name, {1, 1, options.dim}));
    const std::vector<float> token = to_floats(view);
    std::transform(token.begin(), token.end(), row, row, std::plus<>());
    row += options.dim;
  }
  return Embedding::of(std::move(table), options.dim);
}

}  // namespace

StatusOr<std::unique_ptr<EncoderInput>> PatchInput::load(const Options& options, WeightMap& weights,
                                                         const PackOptions& packing) {
  const PatchEmbedding::Options patch_options{.prefix = options.projection,
                                              .channels = kChannels,
                                              .dim = options.dim,
                                              .height = options.patch.height,
                                              .width = options.patch.width};
  ASSIGN_OR_RETURN(PatchEmbedding patches, PatchEmbedding::load(weights, patch_options, packing));
  ASSIGN_OR_RETURN(Embedding table, read_table(options, weights));
  return std::unique_ptr<EncoderInput>(new PatchInput(options, std::move(patches), std::move(table)));
}

void PatchInput::forward(Context& context, const EncodeBatch& batch, const TensorView& x) const {
  table_.look_up(context, batch.positions, 0, 1.0f, x);
  int64_t row = 0;
  for (size_t i = 0; i < batch.attention.seq_lens.size(); ++i) {
    const int64_t end = row + batch.attention.seq_lens[i];
    const TensorView patches = x.rows(std::min(row + num_tokens_, end), end);
    PictureView picture;
    if (!context.dry_run) picture = checked(batch.features[i], batch.attention.seq_lens[i]);
    patches_.forward(context, picture, patches, patches);
    row = end;
  }
}

PictureView PatchInput::checked(const FeaturesView& features, int32_t num_positions) const {
  const std::span<const int64_t> shape = features.shape;
  const auto& [height, width] = picture_;
  CHECK(shape.size() == 3 && shape[0] == kChannels && shape[1] == height && shape[2] == width &&
            num_positions == num_positions_,
        "pixels of ", shape.size(), " axes for pictures of ", height, " by ", width);
  return {features.values, height, width};
}

}  // namespace transept
