#include "models/davit_tower.h"

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "ops/channels.h"
#include "ops/rows.h"

namespace transept {
namespace {

constexpr const char* kTower = "vision_tower.";

struct ProjectorNames {
  const char* projection;
  const char* norm;
  const char* rows;
  const char* columns;
  const char* moments;
};
constexpr ProjectorNames kNative{"multi_modal_projector.image_projection.weight",
                                 "multi_modal_projector.image_proj_norm",
                                 "multi_modal_projector.image_position_embed.row_embeddings.weight",
                                 "multi_modal_projector.image_position_embed.column_embeddings.weight",
                                 "multi_modal_projector.visual_temporal_embed.pos_idx_to_embed"};
constexpr ProjectorNames kOriginal{"image_projection", "image_proj_norm", "image_pos_embed.row_embeddings.weight",
                                   "image_pos_embed.column_embeddings.weight",
                                   "visual_temporal_embed.pos_idx_to_embed"};

const ProjectorNames& names_of(const DavitConfig& config) { return config.has_original_names ? kOriginal : kNative; }

MapSize as_map(const PictureSize& size) { return {size.height, size.width}; }

}  // namespace

int32_t DavitTower::num_rows(const DavitConfig& config, std::span<const int64_t> shape) {
  constexpr int64_t kMaxSide = 1 << 15;
  if (shape.size() != 3 || shape[0] != 3 || shape[1] > kMaxSide || shape[2] > kMaxSide) return 0;
  const std::vector<PictureSize> maps = maps_of(config.convs(), {shape[1], shape[2]});
  if (maps.empty() || std::max(maps.back().height, maps.back().width) > config.max_side) return 0;
  return static_cast<int32_t>(1 + maps.back().height * maps.back().width);
}

void DavitTower::ignore(WeightMap& weights) {
  for (const char* beginning : {kTower, "multi_modal_projector.", "image_projection", "image_proj_norm",
                                "image_pos_embed.", "visual_temporal_embed."}) {
    weights.ignore_below(beginning);
  }
}

StatusOr<DavitTower> DavitTower::load(WeightMap& weights, const DavitConfig& config, const ModelLoadOptions& options) {
  std::vector<DavitStage> stages;
  for (size_t i = 0; i < config.stages.size(); ++i) {
    ASSIGN_OR_RETURN(DavitStage stage, DavitStage::load(weights, kTower, config, i, options));
    stages.push_back(std::move(stage));
  }
  const ProjectorNames& names = names_of(config);
  const LinearSource source{
      .weight = names.projection, .bias = "", .out_features = config.width, .is_transposed = config.has_original_names};
  ASSIGN_OR_RETURN(Linear projection, Linear::load(weights, {{source}, stages.back().dim()}, options.packing));
  ASSIGN_OR_RETURN(Norm norm, Norm::load(weights, names.norm, config.width, {}));
  DavitTower tower(config, std::move(stages), std::move(projection), std::move(norm));
  RETURN_IF_ERROR(tower.load_positions(weights));
  return tower;
}

Status DavitTower::load_positions(WeightMap& weights) {
  const ProjectorNames& names = names_of(config_);
  const int64_t dim = stages_.back().dim();
  ASSIGN_OR_RETURN(const WeightView rows, weights.get(names.rows, {config_.max_side, dim / 2}));
  ASSIGN_OR_RETURN(const WeightView columns, weights.get(names.columns, {config_.max_side, dim - dim / 2}));
  rows_ = to_floats(rows);
  columns_ = to_floats(columns);
  // Of the moment 0: sin 0 and cos 0 by turns, unless a file says otherwise.
  for (int64_t i = 0; i < dim; ++i) moment_.push_back(i % 2 == 0 ? 0.0f : 1.0f);
  if (!weights.contains(names.moments)) return ok_status();
  ASSIGN_OR_RETURN(const WeightView moments, weights.get(names.moments, {config_.max_temporal, dim}));
  widen_to_float(moments, 0, moment_);
  return ok_status();
}

void DavitTower::forward(Context& context, DType kv_dtype, const FeaturesView& picture, const TensorView& y) const {
  CHECK(num_rows(config_, picture.shape) == y.dim(0), "a picture for ", y.dim(0), " rows");
  const PictureView view{picture.values, picture.shape[1], picture.shape[2]};
  std::vector<MapSize> maps;
  for (const PictureSize& map : maps_of(config_.convs(), {view.height, view.width})) maps.push_back(as_map(map));
  run(context, kv_dtype, view, maps, y);
}

// Of all maps with so many rows, one of a single row keeps the most behind the next convolution, where sides are
// rounded up (read_picture_convs).
void DavitTower::measure(Context& context, DType kv_dtype, int64_t widest_rows, const TensorView& y) const {
  CHECK(context.dry_run);
  std::vector<MapSize> maps{{1, widest_rows}};
  for (size_t i = 1; i < stages_.size(); ++i) {
    maps.push_back({1, ceil_div(maps.back().width, config_.stages[i].conv.stride)});
  }
  run(context, kv_dtype, {}, maps, y);
}

void DavitTower::run(Context& context, DType kv_dtype, const PictureView& picture, std::span<const MapSize> maps,
                     const TensorView& y) const {
  const Arena::Scope scope(context.arena);
  int64_t most = 0;
  for (size_t i = 0; i < maps.size(); ++i) most = std::max(most, maps[i].num_rows() * stages_[i].dim());
  // Two maps of one size: convolutions read neighbours.
  const TensorView memory[] = {context.arena.tensor(DType::kFloat32, {most}),
                               context.arena.tensor(DType::kFloat32, {most})};
  const auto map_at = [&](size_t index, size_t stage) {
    return TensorView(memory[index].raw, DType::kFloat32, {maps[stage].num_rows(), stages_[stage].dim()});
  };
  size_t at = 0;
  stages_[0].embed(context, picture, map_at(0, 0));
  for (size_t stage = 0;; ++stage) {
    stages_[stage].forward(context, kv_dtype, maps[stage], map_at(at, stage), map_at(1 - at, stage));
    if (stage + 1 == stages_.size()) break;
    stages_[stage + 1].embed(context, maps[stage], map_at(at, stage), map_at(1 - at, stage + 1));
    at = 1 - at;
  }
  project(context, maps.back(), map_at(at, stages_.size() - 1), y);
}

void DavitTower::project(Context& context, const MapSize& map, const TensorView& x, const TensorView& y) const {
  const Arena::Scope scope(context.arena);
  const int64_t dim = x.dim(1);
  const auto add_positions = [&](int64_t i, std::span<float> out) {
    const int64_t half = dim - dim / 2;
    const float* column = columns_.data() + i % map.width * half;
    const float* row = rows_.data() + i / map.width * (dim / 2);
    std::copy_n(column, half, out.begin());
    std::copy_n(row, dim / 2, out.begin() + half);
    for (int64_t j = 0; j < dim; ++j) out[static_cast<size_t>(j)] += moment_[static_cast<size_t>(j)];
  };
  // A dry run knows that there are as many rows as y has, or fewer.
  const int64_t num_rows = context.dry_run ? std::max<int64_t>(1, y.dim(0) - 1) : x.dim(0);
  const TensorView rows(x.raw, DType::kFloat32, {num_rows, dim});
  add_rows(context, add_positions, rows);
  const TensorView mean = context.arena.tensor(DType::kFloat32, {1, dim});
  mean_of_rows(context, rows, mean);
  projection_.forward(context, mean, {}, y.rows(0, 1));
  projection_.forward(context, rows, {}, context.dry_run ? y.rows(0, num_rows) : y.rows(1, 1 + num_rows));
  norm_.forward(context, y, y);
}

}  // namespace transept
