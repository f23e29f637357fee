#include "models/square_input.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace transept {
namespace {

constexpr int64_t kChannels = 3;

}  // namespace

StatusOr<SquareInput::Parts> SquareInput::load(const Options& options, WeightMap& weights, const PackOptions& packing) {
  const PatchEmbedding::Options patch_options{.prefix = options.projection,
                                              .channels = kChannels,
                                              .dim = options.dim,
                                              .height = options.patch,
                                              .width = options.patch};
  ASSIGN_OR_RETURN(PatchEmbedding patches, PatchEmbedding::load(weights, patch_options, packing));
  const auto get = [&](const std::string& name, int64_t rows) {
    return options.is_batched ? weights.get(name, {1, rows, options.dim}) : weights.get(name, {rows, options.dim});
  };
  ASSIGN_OR_RETURN(const WeightView positions, get(options.positions, options.num_rows()));
  ASSIGN_OR_RETURN(const WeightView token_view, get(options.token, 1));
  std::vector<float> table = to_floats(positions);
  const std::vector<float> token = to_floats(token_view);
  std::transform(token.begin(), token.end(), table.begin(), table.begin(), std::plus<>());
  return Parts{std::move(patches), Embedding::of(std::move(table), options.dim)};
}

SquareInput::SquareInput(const Options& options, Parts parts, TransformerStack layers)
    : options_(options),
      parts_(std::move(parts)),
      layers_(std::move(layers)),
      rows_(static_cast<size_t>(options.num_rows())),
      positions_(2 * rows_.size()) {
  std::iota(rows_.begin(), rows_.end(), 0);
  for (size_t row = 1; row < rows_.size(); ++row) {
    const int64_t place = static_cast<int64_t>(row) - 1;
    positions_[row] = static_cast<int32_t>(place / options.grid());
    positions_[rows_.size() + row] = static_cast<int32_t>(place % options.grid());
  }
}

StatusOr<TransformerStack> SquareInput::one_layer(const AttentionBackend& attention) {
  StackParts nothing;
  nothing.layers.emplace_back();
  return TransformerStack::make(std::move(nothing), attention);
}

void SquareInput::forward(Context& context, const EncodeBatch& batch, const TensorView& x) const {
  const DType kv_dtype = batch.attention.kv_dtype;
  if (context.dry_run) {
    const Arena::Scope scope(context.arena);
    // A dry run has any number of rows, a picture its own.
    const TensorView y = x.dim(0) >= options_.num_out
                             ? x.rows(0, options_.num_out)
                             : context.arena.tensor(DType::kFloat32, {options_.num_out, x.dim(1)});
    return run(context, kv_dtype, nullptr, y);
  }
  int64_t row = 0;
  for (size_t i = 0; i < batch.attention.seq_lens.size(); ++i) {
    const int64_t end = row + batch.attention.seq_lens[i];
    CHECK(end - row == options_.num_out, end - row, " rows of a picture that has ", options_.num_out);
    run(context, kv_dtype, &batch.features[i], x.rows(row, end));
    row = end;
  }
}

void SquareInput::run(Context& context, DType kv_dtype, const FeaturesView* features, const TensorView& y) const {
  const Arena::Scope scope(context.arena);
  const TensorView x = context.arena.tensor(DType::kFloat32, {options_.num_rows(), options_.dim});
  PictureView picture{{}, options_.side, options_.side};
  if (features != nullptr) {
    const std::span<const int64_t> shape = features->shape;
    CHECK(shape.size() == 3 && shape[0] == kChannels && shape[1] == options_.side && shape[2] == options_.side,
          "pixels of ", shape.size(), " axes for a picture of ", options_.side, " a side");
    picture.values = features->values;
  }
  parts_.positions.look_up(context, rows_, 0, 1.0f, x);
  const TensorView patches = x.rows(1, x.dim(0));
  parts_.patches.forward(context, picture, patches, patches);
  const auto num_rows = static_cast<int32_t>(x.dim(0));
  const int32_t starts[] = {0, num_rows};
  EncodeBatch whole;
  whole.positions = positions_;
  AttentionMetadata& attention = whole.attention;
  attention.num_seqs = 1;
  attention.max_query_len = attention.max_kv_len = num_rows;
  attention.query_start_loc = attention.kv_start_loc = starts;
  attention.seq_lens = std::span(starts).last(1);
  attention.kv_dtype = kv_dtype;
  layers_.encode(context, whole, {0, layers_.num_layers()}, x);
  finish(context, x, y);
}

}  // namespace transept
