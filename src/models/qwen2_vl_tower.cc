#include "models/qwen2_vl_tower.h"

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "models/activation_field.h"
#include "models/patch_windows.h"
#include "multimodal/qwen2_vl_pictures.h"
#include "ops/rows.h"

namespace transept {
namespace {

// Patches, and rows of the merger, that are computed at once: what bounds the step memory of pixels and hidden rows.
constexpr int64_t kRowsAtOnce = 512;
constexpr float kEpsilon = 1e-6f;  // the reference's own, of every norm

struct TowerConfig {
  Qwen2VlKind kind = Qwen2VlKind::kQwen2_5;
  Qwen2VlPictures pictures;
  int64_t depth = 0, dim = 0, hidden_dim = 0, heads = 0;
  int64_t out_dim = 0;        // of merged rows
  int64_t window_side = 0;    // in cells; 0: no layer has windows
  std::vector<bool> is_full;  // [depth] attends to the whole picture
  Activation activation = Activation::kSilu;
  double theta = 0;

  bool has_rms() const { return kind == Qwen2VlKind::kQwen2_5; }
  int64_t head_dim() const { return dim / heads; }
  int64_t merged_dim() const { return dim * pictures.patches_a_row(); }
};

// ---- config.json

Status read_full_layers(const Json& config, const ConfigReader& reader, TowerConfig& out) {
  constexpr const char* kKey = "fullatt_block_indexes";
  constexpr int64_t kMost = 1000;
  const auto count = static_cast<size_t>(out.depth);
  out.is_full.assign(count, false);
  const Json* const list = config.find(kKey);
  std::vector<int64_t> indexes = {7, 15, 23, 31};  // the class's
  if (list != nullptr && !list->is_null()) {
    if (!list->is_array() || std::ssize(list->as_array()) > kMost) {
      return reader.error(kKey, str_cat("expected a list of at most ", kMost, " layers"));
    }
    indexes.clear();
    for (const Json& index : list->as_array()) {
      if (!index.is_int() || index.as_int() < 0 || index.as_int() > kMost) {
        return reader.error(kKey, str_cat("expected whole numbers from 0 to ", kMost));
      }
      indexes.push_back(index.as_int());
    }
  }
  for (const int64_t index : indexes) {  // others name layers that are not there, which the reference does not mind
    if (index < out.depth) out.is_full[static_cast<size_t>(index)] = true;
  }
  return ok_status();
}

Status read_windows(const Json& config, const ConfigReader& reader, TowerConfig& out) {
  if (out.kind == Qwen2VlKind::kQwen2) {
    out.is_full.assign(static_cast<size_t>(out.depth), true);
    return ok_status();
  }
  RETURN_IF_ERROR(read_full_layers(config, reader, out));
  constexpr int64_t kMaxWindow = 1 << 15;
  ASSIGN_OR_RETURN(const int64_t pixels, reader.integer("window_size", 1, kMaxWindow, 112));
  const int64_t cell = out.pictures.merge * out.pictures.patch;
  out.window_side = pixels / out.pictures.merge / out.pictures.patch;
  if (out.window_side > 0) return ok_status();
  return reader.error("window_size", str_cat(pixels, " pixels are less than the ", cell, " of one merged patch"));
}

Status read_sizes(const ConfigReader& reader, TowerConfig& out) {
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxDim = 1 << 20;
  const bool is_first = out.kind == Qwen2VlKind::kQwen2;
  const char* const width = is_first ? "embed_dim" : "hidden_size";
  ASSIGN_OR_RETURN(out.depth, reader.integer("depth", 1, kMaxLayers, 32));
  ASSIGN_OR_RETURN(out.dim, reader.integer(width, 1, kMaxDim, is_first ? 1280 : 3584));
  ASSIGN_OR_RETURN(out.heads, reader.integer("num_heads", 1, kMaxHeads, 16));
  ASSIGN_OR_RETURN(out.out_dim, reader.integer(is_first ? "hidden_size" : "out_hidden_size", 1, kMaxDim, 3584));
  if (out.dim % out.heads != 0) {
    return reader.error("num_heads", str_cat(out.heads, " heads do not divide ", width, " ", out.dim));
  }
  if (out.head_dim() % 4 != 0) {
    return reader.error("num_heads", str_cat(out.heads, " heads are ", out.head_dim(),
                                             " wide: rows and columns rotate multiples of 4"));
  }
  if (is_first) {
    ASSIGN_OR_RETURN(const double ratio, reader.number("mlp_ratio", 0, 64, 4));
    out.hidden_dim = static_cast<int64_t>(static_cast<double>(out.dim) * ratio);
    if (out.hidden_dim < 1) return reader.error("mlp_ratio", "gives a feed-forward of no width");
  } else {
    ASSIGN_OR_RETURN(out.hidden_dim, reader.integer("intermediate_size", 1, kMaxDim, 3420));
  }
  return ok_status();
}

StatusOr<TowerConfig> read_qwen2_vl_tower_config(const ModelConfig& config, Qwen2VlKind kind) {
  TowerConfig out;
  out.kind = kind;
  ASSIGN_OR_RETURN(out.pictures, read_qwen2_vl_pictures(config));
  const Json& object = *config.raw.find("vision_config");
  const ConfigReader reader(object, config.path + "/config.json: vision_config");
  RETURN_IF_ERROR(read_sizes(reader, out));
  RETURN_IF_ERROR(read_windows(object, reader, out));
  ASSIGN_OR_RETURN(out.activation,
                   read_activation(reader, "hidden_act", kind == Qwen2VlKind::kQwen2 ? "quick_gelu" : "silu"));
  const Json* const rope = object.find("rope_parameters");
  const bool has_rope = rope != nullptr && rope->is_object();
  const ConfigReader of_rope(has_rope ? *rope : object, has_rope ? reader.file() + ": rope_parameters" : reader.file());
  ASSIGN_OR_RETURN(out.theta, of_rope.number("rope_theta", 1, 1e12, 10000));
  if (!has_rope) return out;
  ASSIGN_OR_RETURN(const std::string type, of_rope.string("rope_type", "axial"));
  if (type == "axial") return out;
  return with_param(unimplemented(of_rope.file(), ": rope_type: \"", type, "\" is not supported, only axial"),
                    "rope_type");
}

// ---- the tower

// Pictures one behind another: the rows of one are there at a time.
class TowerInput final : public EncoderInput {
 public:
  TowerInput(const TowerConfig& config, Linear pixels, TransformerStack layers, Norm norm, Linear up, Linear down)
      : config_(config),
        pixels_(std::move(pixels)),
        layers_(std::move(layers)),
        norm_(std::move(norm)),
        up_(std::move(up)),
        down_(std::move(down)) {}

  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override {
    const DType kv_dtype = batch.attention.kv_dtype;
    if (context.dry_run) return measure(context, kv_dtype, batch.num_widest_rows(), x);
    int64_t row = 0;
    for (size_t i = 0; i < batch.attention.seq_lens.size(); ++i) {
      const int64_t end = row + batch.attention.seq_lens[i];
      const FeaturesView& features = batch.features[i];
      run(context, kv_dtype, features, checked_grid(features, end - row), x.rows(row, end));
      row = end;
    }
  }

 private:
  PatchGridSize checked_grid(const FeaturesView& features, int64_t num_positions) const {
    CHECK(features.shape.size() == 2 && features.extras.size() == 3 && features.shape[1] == pixels_.in_features(),
          "no patches of a picture");
    const PatchGridSize grid{features.extras[1], features.extras[2]};
    CHECK(grid.size() == features.shape[0] && grid.size() == num_positions * config_.pictures.patches_a_row(),
          grid.rows, " by ", grid.columns, " patches for ", num_positions, " positions");
    return grid;
  }

  // Of all pictures with so many patches, a row of merged patches has the most windows, and another the longest.
  void measure(Context& context, DType kv_dtype, int64_t num_patches, const TensorView& y) const {
    const int64_t merge = config_.pictures.merge, cells = ceil_div(num_patches, merge * merge);
    const auto side = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(cells))));
    run(context, kv_dtype, {}, {merge, merge * cells}, y);
    run(context, kv_dtype, {}, {merge * side, merge * ceil_div(cells, side)}, y);
  }

  void run(Context& context, DType kv_dtype, const FeaturesView& features, const PatchGridSize& grid,
           const TensorView& y) const {
    const Arena::Scope scope(context.arena);
    const PatchWindows windows(grid, config_.pictures.merge, config_.window_side);
    const TensorView x = context.arena.tensor(DType::kFloat32, {grid.size(), config_.dim});
    embed(context, features, windows, x);
    run_layers(context, kv_dtype, windows, x);
    merge(context, windows, x, y);
  }

  void embed(Context& context, const FeaturesView& features, const PatchWindows& windows, const TensorView& x) const {
    const auto width = static_cast<size_t>(pixels_.in_features());
    for (int64_t begin = 0; begin < x.dim(0); begin += kRowsAtOnce) {
      const int64_t end = std::min(begin + kRowsAtOnce, x.dim(0));
      const Arena::Scope scope(context.arena);
      const TensorView patches = context.arena.tensor(DType::kFloat32, {end - begin, pixels_.in_features()});
      const auto make_row = [&](int64_t i, std::span<float> row) {
        const auto from = static_cast<size_t>(windows.patch(begin + i)) * width;
        std::ranges::copy(features.values.subspan(from, width), row.begin());
      };
      write_rows(context, make_row, patches);
      pixels_.forward(context, patches, {}, x.rows(begin, end));
    }
  }

  // Layers that attend alike run in one piece.
  void run_layers(Context& context, DType kv_dtype, const PatchWindows& windows, const TensorView& x) const {
    const auto num_patches = static_cast<int32_t>(x.dim(0));
    const int32_t whole_start[] = {0, num_patches};
    EncodeBatch whole, parted;
    whole.positions = parted.positions = windows.positions();
    set_sequences(whole_start, std::span(whole_start).last(1), num_patches, kv_dtype, whole.attention);
    set_sequences(windows.starts(), windows.lengths(), windows.longest(), kv_dtype, parted.attention);
    const auto is_full = [&](int32_t layer) { return config_.is_full[static_cast<size_t>(layer)]; };
    for (int32_t begin = 0; begin < layers_.num_layers();) {
      int32_t end = begin + 1;
      while (end < layers_.num_layers() && is_full(end) == is_full(begin)) ++end;
      layers_.encode(context, is_full(begin) ? whole : parted, {begin, end}, x);
      begin = end;
    }
  }

  static void set_sequences(View<int32_t> starts, View<int32_t> lengths, int32_t longest, DType kv_dtype,
                            AttentionMetadata& out) {
    out.num_seqs = static_cast<int32_t>(lengths.size());
    out.max_query_len = out.max_kv_len = longest;
    out.query_start_loc = out.kv_start_loc = starts;
    out.seq_lens = lengths;
    out.kv_dtype = kv_dtype;
  }

  // Cells go back to the order of the features.
  void merge(Context& context, const PatchWindows& windows, const TensorView& x, const TensorView& y) const {
    norm_.forward(context, x, x);
    const TensorView cells(x.raw, DType::kFloat32, {std::ssize(windows.cells()), config_.merged_dim()});
    for (int64_t begin = 0; begin < cells.dim(0); begin += kRowsAtOnce) {
      const int64_t end = std::min(begin + kRowsAtOnce, cells.dim(0)), count = end - begin;
      const Arena::Scope scope(context.arena);
      const TensorView some = context.arena.tensor(DType::kFloat32, {count, config_.merged_dim()});
      const TensorView hidden = context.arena.tensor(DType::kFloat32, {count, config_.merged_dim()});
      gather_rows(context, cells, windows.places().subspan(static_cast<size_t>(begin), static_cast<size_t>(count)),
                  some);
      up_.forward(context, some, {.activation = Activation::kGelu}, hidden);
      // A dry run knows no grid, and has room for another number of rows.
      const bool fits = end <= y.dim(0);
      CHECK(fits || context.dry_run);
      const TensorView out = fits ? y.rows(begin, end) : context.arena.tensor(DType::kFloat32, {count, y.dim(1)});
      down_.forward(context, hidden, {}, out);
    }
  }

  const TowerConfig config_;
  Linear pixels_;
  TransformerStack layers_;
  Norm norm_;
  Linear up_, down_;  // the merger's
};

class Qwen2VlTowerLoader final {
 public:
  Qwen2VlTowerLoader(const TowerConfig& config, const std::string& prefix, WeightMap& weights,
                     const ModelLoadOptions& options)
      : config_(config), prefix_(prefix), weights_(weights), options_(options) {}

  StatusOr<Encoder> load() {
    const Qwen2VlPictures& pictures = config_.pictures;
    const LinearSource patch{.weight = prefix_ + "patch_embed.proj.weight",
                             .out_features = config_.dim,
                             .patch_height = pictures.patch,
                             .patch_width = pictures.patch,
                             .patch_depth = pictures.temporal};
    ASSIGN_OR_RETURN(
        Linear pixels,
        Linear::load(weights_, {{patch}, pictures.patch_values(), LayerInputs::kConvolution}, options_.packing));
    ASSIGN_OR_RETURN(TransformerStack layers, stack());
    ASSIGN_OR_RETURN(Norm merger_norm, norm(prefix_ + "merger.ln_q"));
    ASSIGN_OR_RETURN(Linear up, merger_layer("merger.mlp.0", config_.merged_dim()));
    ASSIGN_OR_RETURN(Linear down, merger_layer("merger.mlp.2", config_.out_dim));
    auto input = std::make_unique<TowerInput>(config_, std::move(pixels), std::move(layers), std::move(merger_norm),
                                              std::move(up), std::move(down));
    // Rows change in number and width inside: the tower is one layer, which its input computes.
    StackParts nothing;
    nothing.layers.emplace_back();
    ASSIGN_OR_RETURN(TransformerStack one, TransformerStack::make(std::move(nothing), options_.attention));
    return Encoder{std::move(input), std::move(one)};
  }

 private:
  StatusOr<TransformerStack> stack() {
    StackParts parts;
    for (int64_t i = 0; i < config_.depth; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(prefix_, "blocks.", i, ".")));
      parts.layers.push_back(std::move(loaded));
    }
    // A half of the pairs goes by rows, the other by columns, with the same frequencies.
    const std::vector<float> of_one = rope_frequencies(config_.head_dim() / 2, config_.theta);
    const auto pairs = static_cast<int32_t>(of_one.size());
    parts.rope = {of_one, RopePairs::kHalves, {pairs, pairs}};
    parts.rope.frequencies.insert(parts.rope.frequencies.end(), of_one.begin(), of_one.end());
    return TransformerStack::make(std::move(parts), options_.attention);
  }

  StatusOr<TransformerLayer> layer(const std::string& prefix) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + "norm1"));
    AttentionOptions attention;
    attention.prefix = prefix + "attn";
    attention.fused = "qkv";
    attention.out = "proj";
    attention.dim = config_.dim;
    attention.num_heads = config_.heads;
    attention.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim()));
    ASSIGN_OR_RETURN(SelfAttention self, SelfAttention::load(weights_, attention, options_.packing));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + "norm2"));
    ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights_, feed_forward_options(prefix), options_.packing));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  FeedForward::Options feed_forward_options(const std::string& prefix) const {
    if (config_.kind == Qwen2VlKind::kQwen2) {
      return {prefix + "mlp.fc1", prefix + "mlp.fc2", config_.dim, config_.hidden_dim, config_.activation};
    }
    FeedForward::Options options{prefix + "mlp.up_proj", prefix + "mlp.down_proj", config_.dim, config_.hidden_dim,
                                 config_.activation};
    options.gate = prefix + "mlp.gate_proj";
    return options;
  }

  StatusOr<Linear> merger_layer(const std::string& name, int64_t out_features) {
    const LinearSource source{str_cat(prefix_, name, ".weight"), str_cat(prefix_, name, ".bias"), out_features};
    return Linear::load(weights_, {{source}, config_.merged_dim()}, options_.packing);
  }

  StatusOr<Norm> norm(const std::string& prefix) {
    const NormKind kind = config_.has_rms() ? NormKind::kRms : NormKind::kLayer;
    return Norm::load(weights_, prefix, config_.dim, {.kind = kind, .epsilon = kEpsilon});
  }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm loaded, norm(prefix));
    return Residual{std::move(loaded), NormPlace::kBefore};
  }

  const TowerConfig& config_;
  const std::string& prefix_;
  WeightMap& weights_;
  const ModelLoadOptions& options_;
};

class Qwen2VlTower final : public VisionTower {
 public:
  explicit Qwen2VlTower(TowerConfig config) : config_(std::move(config)) {}

  VisionTowerSizes sizes() const override {
    return {.width = static_cast<int32_t>(config_.out_dim),
            .num_positions = config_.pictures.max_positions(),
            .num_rows = config_.pictures.max_patches};
  }

  StatusOr<Encoder> load(const std::string& prefix, WeightMap& weights,
                         const ModelLoadOptions& options) const override {
    return Qwen2VlTowerLoader(config_, prefix, weights, options).load();
  }

 private:
  const TowerConfig config_;
};

}  // namespace

StatusOr<std::unique_ptr<VisionTower>> make_qwen2_vl_tower(const ModelConfig& config, Qwen2VlKind kind) {
  ASSIGN_OR_RETURN(TowerConfig sizes, read_qwen2_vl_tower_config(config, kind));
  return std::unique_ptr<VisionTower>(std::make_unique<Qwen2VlTower>(std::move(sizes)));
}

}  // namespace transept
