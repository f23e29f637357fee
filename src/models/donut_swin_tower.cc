// DonutSwin, the encoder of Donut (Kim et al. 2022) and Nougat (Blecher et al. 2023): a Swin transformer (Liu et al.
// 2021) without a norm behind its last stage. Patches of a picture of any size, then stages of blocks that attend in
// windows; between stages, four neighbours become one row of twice the width. Checkpoints: the towers of
// naver-clova-ix/donut-*, facebook/nougat-*. Source: transformers, models/donut/modeling_donut_swin.py.
//
// Rows change in number and width inside, so the tower is one layer: its input computes all of it, and the stack's one
// layer has no sublayer.
//
// Where the reference differs: it keeps the smaller windows of a small picture for the pictures after it, and cannot
// run where a map is smaller than a window, because it adds the whole table of positions; here windows are those of the
// picture alone, and a small one reads the middle of the table, whose entries have the same distances.
#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "core/picture_size_field.h"
#include "layers/patch_embedding.h"
#include "models/activation_field.h"
#include "models/swin_stage.h"
#include "models/vision_tower.h"

namespace transept {
namespace {

constexpr int64_t kChannels = 3;
constexpr int64_t kMaxStages = 8, kMaxBlocks = 1000, kMaxSwinHeads = 1024, kMaxSwinDim = 1 << 20;
constexpr int64_t kMaxSide = 1 << 15, kMaxPatch = 1 << 10, kMaxWindow = 64;
constexpr int64_t kMaxRows = 1 << 24;                 // of the first map: 128 megapixels in patches of 4
constexpr int64_t kMaxBiasBytes = int64_t{32} << 20;  // of a window's bias, which is made in step memory

struct StageSizes {
  int64_t num_blocks = 0, num_heads = 0;
};

struct SwinConfig {
  PictureSize picture, patch;
  int64_t embed_dim = 0;
  std::vector<StageSizes> stages;
  int64_t window_side = 0;
  double mlp_ratio = 0;
  bool qkv_bias = true;
  Activation activation = Activation::kGelu;
  float epsilon = 0;

  int64_t dim(size_t stage) const { return embed_dim << stage; }
  int64_t hidden_dim(size_t stage) const { return static_cast<int64_t>(mlp_ratio * static_cast<double>(dim(stage))); }
  MapSize map_of(int64_t height, int64_t width) const {
    return {ceil_div(height, patch.height), ceil_div(width, patch.width)};
  }
  MapSize last_map(MapSize map) const {
    for (size_t i = 1; i < stages.size(); ++i) map = PatchMerging::merged(map);
    return map;
  }
};

// ---- config.json

// Absent: what the reference's class has; it leaves such values out when it writes a file.
StatusOr<std::vector<int64_t>> read_list(const Json& config, const ConfigReader& reader, std::string_view key,
                                         int64_t max, std::vector<int64_t> fallback) {
  const Json* list = config.find(key);
  if (list == nullptr || list->is_null()) return fallback;
  if (!list->is_array() || list->as_array().empty() || std::ssize(list->as_array()) > kMaxStages) {
    return reader.error(key, str_cat("expected a list of 1 to ", kMaxStages, " numbers"));
  }
  std::vector<int64_t> numbers;
  for (const Json& value : list->as_array()) {
    if (!value.is_int() || value.as_int() < 1 || value.as_int() > max) {
      return reader.error(key, str_cat("expected whole numbers from 1 to ", max));
    }
    numbers.push_back(value.as_int());
  }
  return numbers;
}

// What the reference computes of other fields; it must not say something else.
Status check_derived(const ConfigReader& reader, std::string_view key, int64_t value, std::string_view of) {
  ASSIGN_OR_RETURN(const int64_t given, reader.integer(key, 1, kMaxSwinDim, value));
  if (given == value) return ok_status();
  return reader.error(key, str_cat(given, " contradicts ", of, ", which gives ", value));
}

Status read_stages(const Json& config, const ConfigReader& reader, SwinConfig& out) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> depths, read_list(config, reader, "depths", kMaxBlocks, {2, 2, 6, 2}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> heads,
                   read_list(config, reader, "num_heads", kMaxSwinHeads, {3, 6, 12, 24}));
  if (heads.size() != depths.size()) {
    return reader.error("num_heads", str_cat(heads.size(), " numbers for ", depths.size(), " stages of depths"));
  }
  const auto num_stages = static_cast<int64_t>(depths.size());
  RETURN_IF_ERROR(check_derived(reader, "num_layers", num_stages, "depths"));
  ASSIGN_OR_RETURN(out.embed_dim, reader.integer("embed_dim", 1, kMaxSwinDim >> (num_stages - 1), 96));
  RETURN_IF_ERROR(check_derived(reader, "hidden_size", out.dim(depths.size() - 1), "embed_dim"));
  ASSIGN_OR_RETURN(out.mlp_ratio, reader.number("mlp_ratio", 0, 64, 4.0));
  if (out.hidden_dim(0) < 1) return reader.error("mlp_ratio", "gives a feed-forward of no width");
  for (size_t i = 0; i < depths.size(); ++i) {
    if (out.dim(i) % heads[i] != 0) {
      return reader.error("num_heads",
                          str_cat(heads[i], " heads do not divide the ", out.dim(i), " columns of stage ", i));
    }
    out.stages.push_back({depths[i], heads[i]});
  }
  return ok_status();
}

Status read_windows(const ConfigReader& reader, SwinConfig& out) {
  ASSIGN_OR_RETURN(out.window_side, reader.integer("window_size", 1, kMaxWindow, 7));
  int64_t most_heads = 0;
  for (const StageSizes& stage : out.stages) most_heads = std::max(most_heads, stage.num_heads);
  const int64_t bytes = WindowAttention::bias_bytes(out.window_side, most_heads);
  if (bytes <= kMaxBiasBytes) return ok_status();
  return reader.error("window_size", str_cat(out.window_side, " with ", most_heads, " heads needs ", bytes,
                                             " bytes for the bias of a window, over the ", kMaxBiasBytes, " allowed"));
}

Status read_pictures(const Json& config, const ConfigReader& reader, SwinConfig& out) {
  ASSIGN_OR_RETURN(out.picture, read_picture_size(config, reader, "image_size", kMaxSide, 224));
  ASSIGN_OR_RETURN(out.patch, read_picture_size(config, reader, "patch_size", kMaxPatch, 4));
  ASSIGN_OR_RETURN(const int64_t channels, reader.integer("num_channels", 1, kMaxPatch, kChannels));
  if (channels != kChannels) {
    return with_param(unimplemented(reader.file(), ": num_channels: ", channels, " is not supported, only 3"),
                      "num_channels");
  }
  const MapSize map = out.map_of(out.picture.height, out.picture.width);
  const int64_t rows = map.num_rows(), positions = out.last_map(map).num_rows();
  if (rows > kMaxRows) {
    return reader.error("image_size", str_cat("gives ", rows, " patches, over the ", kMaxRows, " allowed"));
  }
  if (positions <= ModelSpec::kMaxPositions) return ok_status();
  return reader.error("image_size",
                      str_cat("gives ", positions, " positions, over the ", ModelSpec::kMaxPositions, " allowed"));
}

StatusOr<SwinConfig> read_donut_swin_tower_config(const Json& config, const std::string& file) {
  const ConfigReader reader(config, file);
  SwinConfig out;
  ASSIGN_OR_RETURN(const bool absolute, reader.boolean("use_absolute_embeddings", false));
  if (absolute) {
    return with_param(unimplemented(file,
                                    ": use_absolute_embeddings: true is not supported: the reference's table has "
                                    "a row too many, and does not run"),
                      "use_absolute_embeddings");
  }
  RETURN_IF_ERROR(read_stages(config, reader, out));
  RETURN_IF_ERROR(read_windows(reader, out));
  RETURN_IF_ERROR(read_pictures(config, reader, out));
  ASSIGN_OR_RETURN(out.qkv_bias, reader.boolean("qkv_bias", true));
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "hidden_act", "gelu"));
  ASSIGN_OR_RETURN(const double epsilon, reader.number("layer_norm_eps", 0, 1, 1e-5));
  out.epsilon = static_cast<float>(epsilon);
  return out;
}

// ---- the tower

class SwinInput final : public EncoderInput {
 public:
  SwinInput(const SwinConfig& config, PatchEmbedding patches, Norm norm, std::vector<SwinStage> stages)
      : config_(config), patches_(std::move(patches)), norm_(std::move(norm)), stages_(std::move(stages)) {}

  // Pictures one behind another: the maps of one are there at a time.
  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override {
    const DType kv_dtype = batch.attention.kv_dtype;
    if (context.dry_run) {
      // Of all maps with so many rows, one of a single row keeps the most in later stages: halves are rounded up.
      return run(context, kv_dtype, {}, {1, batch.num_widest_rows()}, x);
    }
    int64_t row = 0;
    for (size_t i = 0; i < batch.attention.seq_lens.size(); ++i) {
      const PictureView picture = view_of(batch.features[i]);
      const int64_t end = row + batch.attention.seq_lens[i];
      run(context, kv_dtype, picture, config_.map_of(picture.height, picture.width), x.rows(row, end));
      row = end;
    }
  }

 private:
  static PictureView view_of(const FeaturesView& features) {
    const std::span<const int64_t> shape = features.shape;
    CHECK(shape.size() == 3 && shape[0] == kChannels && shape[1] > 0 && shape[2] > 0, "no picture of three planes");
    return {features.values, shape[1], shape[2]};
  }

  void run(Context& context, DType kv_dtype, const PictureView& picture, MapSize map, const TensorView& y) const {
    CHECK(context.dry_run || config_.last_map(map).num_rows() == y.dim(0), "a picture of ", picture.height, " by ",
          picture.width, " for ", y.dim(0), " positions");
    const Arena::Scope scope(context.arena);
    const TensorView memory = room_for_maps(context, map);
    // The last stage has its map where the result goes, and all others have theirs in one place.
    const auto map_of_stage = [&](size_t stage) {
      const bool is_last = stage + 1 == stages_.size();
      return TensorView(is_last ? y.raw : memory.raw, DType::kFloat32, {map.num_rows(), stages_[stage].dim()});
    };
    TensorView x = map_of_stage(0);
    patches_.forward(context, picture, {}, x);
    norm_.forward(context, x, x);
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      stages_[stage].forward(context, kv_dtype, map, x);
      if (stage + 1 == stages_.size()) break;
      const MapSize before = map;
      map = PatchMerging::merged(map);
      const TensorView merged = map_of_stage(stage + 1);
      stages_[stage].merge(context, before, x, merged);
      x = merged;
    }
  }

  // The largest map of all stages but the last.
  TensorView room_for_maps(Context& context, MapSize map) const {
    int64_t most = 0;
    for (size_t stage = 0; stage + 1 < stages_.size(); ++stage, map = PatchMerging::merged(map)) {
      most = std::max(most, map.num_rows() * stages_[stage].dim());
    }
    return most == 0 ? TensorView() : context.arena.tensor(DType::kFloat32, {most});
  }

  const SwinConfig config_;
  PatchEmbedding patches_;
  Norm norm_;
  std::vector<SwinStage> stages_;
};

class SwinTower final : public VisionTower {
 public:
  explicit SwinTower(const SwinConfig& config) : config_(config) {}

  VisionTowerSizes sizes() const override {
    const MapSize map = config_.map_of(config_.picture.height, config_.picture.width);
    return {.width = static_cast<int32_t>(config_.dim(config_.stages.size() - 1)),
            .num_positions = static_cast<int32_t>(config_.last_map(map).num_rows()),
            .num_rows = static_cast<int32_t>(map.num_rows())};
  }

  StatusOr<Encoder> load(const std::string& prefix, WeightMap& weights,
                         const ModelLoadOptions& options) const override {
    // Of training on masked pictures, of other tasks, and a norm that the class does not have.
    weights.ignore(prefix + "embeddings.mask_token");
    weights.ignore_below(prefix + "pooler.");
    weights.ignore_below(prefix + "layernorm.");
    const PatchEmbedding::Options patch_options{.prefix = prefix + "embeddings.patch_embeddings.projection",
                                                .channels = kChannels,
                                                .dim = config_.embed_dim,
                                                .height = config_.patch.height,
                                                .width = config_.patch.width,
                                                .pads = true};
    ASSIGN_OR_RETURN(PatchEmbedding patches, PatchEmbedding::load(weights, patch_options, options.packing));
    // The reference gives this norm no epsilon of the configuration.
    ASSIGN_OR_RETURN(Norm norm, Norm::load(weights, prefix + "embeddings.norm", config_.embed_dim, {}));
    std::vector<SwinStage> stages;
    for (size_t i = 0; i < config_.stages.size(); ++i) {
      ASSIGN_OR_RETURN(SwinStage stage, SwinStage::load(weights, stage_options(prefix, i), options));
      stages.push_back(std::move(stage));
    }
    StackParts nothing;
    nothing.layers.emplace_back();
    ASSIGN_OR_RETURN(TransformerStack stack, TransformerStack::make(std::move(nothing), options.attention));
    auto input = std::make_unique<SwinInput>(config_, std::move(patches), std::move(norm), std::move(stages));
    return Encoder{std::move(input), std::move(stack)};
  }

 private:
  SwinStage::Options stage_options(const std::string& prefix, size_t stage) const {
    SwinStage::Options options;
    options.prefix = str_cat(prefix, "encoder.layers.", stage);
    options.dim = config_.dim(stage);
    options.hidden_dim = config_.hidden_dim(stage);
    options.num_heads = config_.stages[stage].num_heads;
    options.num_blocks = config_.stages[stage].num_blocks;
    options.window_side = config_.window_side;
    options.qkv_has_bias = config_.qkv_bias;
    options.activation = config_.activation;
    options.epsilon = config_.epsilon;
    options.merges = stage + 1 < config_.stages.size();
    return options;
  }

  const SwinConfig config_;
};

}  // namespace

StatusOr<std::unique_ptr<VisionTower>> make_swin_tower(const Json& config, const std::string& file) {
  ASSIGN_OR_RETURN(const SwinConfig sizes, read_donut_swin_tower_config(config, file));
  return std::unique_ptr<VisionTower>(std::make_unique<SwinTower>(sizes));
}

}  // namespace transept
