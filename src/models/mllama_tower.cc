#include "models/mllama_tower.h"

#include <array>
#include <cmath>
#include <numeric>

#include "layers/patch_embedding.h"
#include "models/activation_field.h"
#include "models/mllama_decoder.h"

namespace transept {
namespace {

constexpr int64_t kChannels = 3;

// ---- config.json

Status read_kept(const ConfigReader& reader, MllamaTowerConfig& out) {
  constexpr const char* kKey = "intermediate_layers_indices";
  out.kept = {3, 7, 15, 23, 30};  // the reference's
  if (reader.has(kKey)) {
    ASSIGN_OR_RETURN(out.kept, reader.token_ids(kKey));  // whole numbers, as ids are
  }
  for (const int32_t layer : out.kept) {
    if (layer < out.layers) continue;
    return reader.error(kKey, str_cat(layer, " is no layer of the ", out.layers, " of num_hidden_layers"));
  }
  if (out.kept.empty()) return reader.error(kKey, "is empty");
  constexpr int64_t kMaxWidth = 1 << 24;
  ASSIGN_OR_RETURN(const int64_t width, reader.integer("vision_output_dim", 1, kMaxWidth, 7680));
  if (width == out.wide_dim()) return ok_status();
  return reader.error("vision_output_dim", str_cat(width, " is not hidden_size ", out.dim, " times ",
                                                   1 + std::ssize(out.kept), ", the last layer and those of ", kKey));
}

// ---- the tower

// A table with a row for each tile of each arrangement, times its gate, and a row of zeros.
struct TileTable {
  Embedding rows;
  int64_t max_tiles = 0;

  int64_t row(int64_t arrangement, int64_t tile) const { return arrangement * max_tiles + tile; }
  int64_t zeros() const { return rows.num_rows() - 1; }
};

struct TowerParts {
  PatchEmbedding patches;
  Embedding positions;   // of each row of a tile, times its gate, with the token of the class in the first
  Embedding by_picture;  // a row for each arrangement: all rows of all its tiles
  float picture_gate = 0;
  TileTable before, behind;  // the layers
  Norm first_norm, second_norm;
  TransformerStack layers, global_layers;
  Linear projector;
};

// Which rows attend to which: those in use to all, padding to those in use.
class TileMask final {
 public:
  TileMask(int64_t num_used, int64_t num_rows, DType kv_dtype)
      : starts_{0, static_cast<int32_t>(num_used), static_cast<int32_t>(num_rows)},
        key_starts_{0, 0, static_cast<int32_t>(num_used)},
        lengths_{static_cast<int32_t>(num_rows), static_cast<int32_t>(num_used)} {
    AttentionMetadata& attention = batch_.attention;
    attention.num_seqs = static_cast<int32_t>(lengths_.size());
    attention.max_query_len = attention.max_kv_len = static_cast<int32_t>(num_rows);
    attention.query_start_loc = starts_;
    attention.kv_start_loc = key_starts_;
    attention.seq_lens = lengths_;
    attention.kv_dtype = kv_dtype;
  }
  TileMask(const TileMask&) = delete;  // batch_ views the lists
  TileMask& operator=(const TileMask&) = delete;

  const EncodeBatch& batch() const { return batch_; }

 private:
  const std::array<int32_t, 3> starts_, key_starts_;
  const std::array<int32_t, 2> lengths_;
  EncodeBatch batch_;
};

// Pictures one behind another: the rows of one are there at a time. Its rows are those of all tiles in order, and then
// the rows that pad each tile. Those of tiles in use are the first.
class TowerInput final : public EncoderInput {
 public:
  TowerInput(const MllamaTowerConfig& config, TowerParts parts)
      : config_(config),
        parts_(std::move(parts)),
        all_positions_(static_cast<size_t>(config.pictures.num_positions())) {
    std::iota(all_positions_.begin(), all_positions_.end(), 0);
  }

  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override {
    const DType kv_dtype = batch.attention.kv_dtype;
    if (context.dry_run) {
      const Arena::Scope scope(context.arena);
      const int64_t num_positions = config_.pictures.num_positions();
      // A dry run has any number of rows, a picture its own.
      const TensorView y = x.dim(0) >= num_positions ? x.rows(0, num_positions)
                                                     : context.arena.tensor(DType::kFloat32, {num_positions, x.dim(1)});
      return run(context, kv_dtype, {}, {config_.pictures.max_tiles, 1}, y);
    }
    int64_t row = 0;
    for (size_t i = 0; i < batch.attention.seq_lens.size(); ++i) {
      const int64_t end = row + batch.attention.seq_lens[i];
      run(context, kv_dtype, batch.features[i], checked(batch.features[i], end - row), x.rows(row, end));
      row = end;
    }
  }

 private:
  struct Tiles {
    int64_t num_used = 0;
    int64_t arrangement = 0;
  };

  Tiles checked(const FeaturesView& features, int64_t num_positions) const {
    const MllamaPictures& pictures = config_.pictures;
    const std::span<const int64_t> shape = features.shape;
    CHECK(shape.size() == 4 && shape[1] == kChannels && shape[2] == pictures.image && shape[3] == pictures.image &&
              features.extras.size() == 1 && num_positions == pictures.num_positions_of(shape[0]),
          "no tiles of a picture");
    CHECK(pictures.num_tiles(features.extras[0]) == shape[0], "arrangement ", features.extras[0], " has not ", shape[0],
          " tiles");
    return {shape[0], features.extras[0]};
  }

  // y: [positions, out_dim], of all tiles or of those in use, which are the first.
  void run(Context& context, DType kv_dtype, const FeaturesView& features, const Tiles& tiles,
           const TensorView& y) const {
    const Arena::Scope scope(context.arena);
    const MllamaPictures& pictures = config_.pictures;
    const TensorView x = context.arena.tensor(DType::kFloat32, {pictures.num_rows(), config_.dim});
    const TensorView wide = context.arena.tensor(DType::kFloat32, {y.dim(0), config_.wide_dim()});
    const TileMask mask(tiles.num_used * pictures.rows_a_tile(), pictures.num_rows(), kv_dtype);
    embed(context, features, tiles, x);
    run_layers(context, mask.batch(), x, wide);
    parts_.second_norm.forward(context, x, x);
    add_behind(context, tiles, x);
    parts_.global_layers.encode(context, mask.batch(), {0, parts_.global_layers.num_layers()}, x);
    keep(context, x, 0, wide);
    parts_.projector.forward(context, wide, {}, y);
  }

  void embed(Context& context, const FeaturesView& features, const Tiles& tiles, const TensorView& x) const {
    const MllamaPictures& pictures = config_.pictures;
    const int64_t num_positions = pictures.num_positions(), a_tile = pictures.rows_a_tile();
    const TensorView rows = x.rows(0, num_positions);
    const int32_t arrangement[] = {static_cast<int32_t>(tiles.arrangement)};
    parts_.by_picture.look_up(context, arrangement, 0, parts_.picture_gate,
                              TensorView(rows.raw, DType::kFloat32, {1, num_positions * config_.dim}));
    const auto in_tile = [&](int64_t i) { return i % a_tile; };
    parts_.positions.add(context, in_tile, rows);
    const auto of_tile = [&](int64_t i) {
      return in_tile(i) == 0 ? parts_.before.zeros() : parts_.before.row(tiles.arrangement, i / a_tile);
    };
    parts_.before.rows.add(context, of_tile, rows);
    const int64_t num_values = kChannels * pictures.image * pictures.image;
    for (int64_t tile = 0; tile < tiles.num_used; ++tile) {
      PictureView picture{{}, pictures.image, pictures.image};
      if (!context.dry_run) {
        picture.values =
            features.values.subspan(static_cast<size_t>(tile * num_values), static_cast<size_t>(num_values));
      }
      const TensorView patches = rows.rows(tile * a_tile + 1, (tile + 1) * a_tile);  // behind the token of the class
      parts_.patches.forward(context, picture, patches, patches);
    }
    parts_.first_norm.forward(context, rows, rows);
    fill_zero(context, x.rows(num_positions, x.dim(0)));
  }

  void run_layers(Context& context, const EncodeBatch& batch, const TensorView& x, const TensorView& wide) const {
    for (int32_t layer = 0; layer < parts_.layers.num_layers(); ++layer) {
      parts_.layers.encode(context, batch, {layer, layer + 1}, x);
      for (size_t i = 0; i < config_.kept.size(); ++i) {
        if (config_.kept[i] == layer) keep(context, x, static_cast<int64_t>(i) + 1, wide);
      }
    }
  }

  // Without the rows that pad tiles, nor what y has no rows of.
  void keep(Context& context, const TensorView& x, int64_t place, const TensorView& wide) const {
    const View<int32_t> kept = View<int32_t>(all_positions_).first(static_cast<size_t>(wide.dim(0)));
    gather_rows(context, x, kept, wide.columns(place * config_.dim, (place + 1) * config_.dim));
  }

  void add_behind(Context& context, const Tiles& tiles, const TensorView& x) const {
    const MllamaPictures& pictures = config_.pictures;
    const int64_t num_positions = pictures.num_positions(), a_tile = pictures.rows_a_tile();
    const int64_t padding = pictures.padded_rows_a_tile() - a_tile;
    const auto of_tile = [&](int64_t i) {
      return parts_.behind.row(tiles.arrangement, i < num_positions ? i / a_tile : (i - num_positions) / padding);
    };
    parts_.behind.rows.add(context, of_tile, x);
  }

  const MllamaTowerConfig config_;
  const TowerParts parts_;
  std::vector<int32_t> all_positions_;
};

class MllamaTowerLoader final {
 public:
  MllamaTowerLoader(const MllamaTowerConfig& config, const std::string& prefix, WeightMap& weights,
                    const ModelLoadOptions& options)
      : config_(config), prefix_(prefix), weights_(weights), options_(options) {}

  StatusOr<Encoder> load(const std::string& projector_prefix) {
    ASSIGN_OR_RETURN(PatchEmbedding patches, load_patches());
    const std::string gated = prefix_ + "gated_positional_embedding.";
    ASSIGN_OR_RETURN(const float gate, read_tanh_gate(weights_, gated + "gate"));
    ASSIGN_OR_RETURN(Embedding positions, load_positions(gated + "embedding", 1 - gate));
    ASSIGN_OR_RETURN(Embedding by_picture,
                     Embedding::load(weights_, gated + "tile_embedding.weight", config_.pictures.num_ratios + 1,
                                     config_.pictures.num_positions() * config_.dim));
    ASSIGN_OR_RETURN(TileTable before, load_tiles(prefix_ + "pre_tile_positional_embedding."));
    ASSIGN_OR_RETURN(TileTable behind, load_tiles(prefix_ + "post_tile_positional_embedding."));
    // torch's epsilon, whatever norm_eps says.
    ASSIGN_OR_RETURN(Norm first_norm, Norm::load(weights_, prefix_ + "layernorm_pre", config_.dim, {}));
    ASSIGN_OR_RETURN(Norm second_norm, Norm::load(weights_, prefix_ + "layernorm_post", config_.dim, {}));
    ASSIGN_OR_RETURN(TransformerStack layers, stack("transformer.layers.", config_.layers, false));
    ASSIGN_OR_RETURN(TransformerStack global, stack("global_transformer.layers.", config_.global_layers, true));
    ASSIGN_OR_RETURN(Linear projector, load_projector(projector_prefix));
    TowerParts parts{std::move(patches), std::move(positions), std::move(by_picture), gate,
                     std::move(before),  std::move(behind),    std::move(first_norm), std::move(second_norm),
                     std::move(layers),  std::move(global),    std::move(projector)};
    // Rows change in number and width inside: the tower is one layer, which its input computes.
    StackParts nothing;
    nothing.layers.emplace_back();
    ASSIGN_OR_RETURN(TransformerStack one, TransformerStack::make(std::move(nothing), options_.attention));
    return Encoder{std::make_unique<TowerInput>(config_, std::move(parts)), std::move(one)};
  }

 private:
  StatusOr<PatchEmbedding> load_patches() {
    const PatchEmbedding::Options options{.prefix = prefix_ + "patch_embedding",
                                          .channels = kChannels,
                                          .dim = config_.dim,
                                          .height = config_.pictures.patch,
                                          .width = config_.pictures.patch,
                                          .has_bias = false};
    return PatchEmbedding::load(weights_, options, options_.packing);
  }

  StatusOr<Embedding> load_positions(const std::string& name, float gate) {
    ASSIGN_OR_RETURN(const WeightView view, weights_.get(name, {config_.pictures.rows_a_tile(), config_.dim}));
    ASSIGN_OR_RETURN(const WeightView token, weights_.get(prefix_ + "class_embedding", {config_.dim}));
    std::vector<float> table = to_floats(view);
    for (float& value : table) value *= gate;
    const std::vector<float> first = to_floats(token);
    for (size_t i = 0; i < first.size(); ++i) table[i] += first[i];
    return Embedding::of(std::move(table), config_.dim);
  }

  StatusOr<TileTable> load_tiles(const std::string& prefix) {
    const int64_t max_tiles = config_.pictures.max_tiles;
    ASSIGN_OR_RETURN(const float gate, read_tanh_gate(weights_, prefix + "gate"));
    ASSIGN_OR_RETURN(const WeightView view, weights_.get(prefix + "embedding.weight",
                                                         {config_.pictures.num_ratios + 1, max_tiles * config_.dim}));
    std::vector<float> table = to_floats(view);
    for (float& value : table) value *= gate;
    table.resize(table.size() + static_cast<size_t>(config_.dim));
    return TileTable{Embedding::of(std::move(table), config_.dim), max_tiles};
  }

  // The checkpoint has the kept layers' rows column by column: column c of all of them, then c + 1.
  StatusOr<Linear> load_projector(const std::string& prefix) {
    const LinearSource source{.weight = prefix + "weight",
                              .bias = prefix + "bias",
                              .out_features = config_.out_dim,
                              .kernel = std::ssize(config_.kept),
                              .before_kernel = config_.dim};
    return Linear::load(weights_, {{source}, config_.wide_dim()}, options_.packing);
  }

  StatusOr<TransformerStack> stack(const std::string& name, int64_t num_layers, bool is_gated) {
    StackParts parts;
    for (int64_t i = 0; i < num_layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(prefix_, name, i, "."), is_gated));
      parts.layers.push_back(std::move(loaded));
    }
    return TransformerStack::make(std::move(parts), options_.attention);
  }

  StatusOr<TransformerLayer> layer(const std::string& prefix, bool is_gated) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + "input_layernorm", is_gated ? prefix + "gate_attn" : ""));
    AttentionOptions attention;
    attention.prefix = prefix + "self_attn";
    attention.out = "o_proj";
    attention.dim = config_.dim;
    attention.num_heads = config_.heads;
    attention.scale = 1.0f / std::sqrt(static_cast<float>(attention.width_of_head()));
    attention.has_biases = false;
    ASSIGN_OR_RETURN(SelfAttention self, SelfAttention::load(weights_, attention, options_.packing));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    ASSIGN_OR_RETURN(Residual ffn_sum,
                     residual(prefix + "post_attention_layernorm", is_gated ? prefix + "gate_ffn" : ""));
    const FeedForward::Options options{prefix + "mlp.fc1", prefix + "mlp.fc2", config_.dim, config_.hidden_dim,
                                       config_.activation};
    ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights_, options, options_.packing));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  StatusOr<Residual> residual(const std::string& prefix, const std::string& gate) {
    ASSIGN_OR_RETURN(Norm norm, Norm::load(weights_, prefix, config_.dim, {.epsilon = config_.epsilon}));
    Residual sum{std::move(norm), NormPlace::kBefore};
    if (gate.empty()) return sum;
    ASSIGN_OR_RETURN(const float value, read_tanh_gate(weights_, gate));
    sum.gate = gate_of(value, weights_);
    return sum;
  }

  const MllamaTowerConfig& config_;
  const std::string& prefix_;
  WeightMap& weights_;
  const ModelLoadOptions& options_;
};

}  // namespace

StatusOr<MllamaTowerConfig> read_mllama_tower(const ModelConfig& config, int64_t out_dim) {
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxDim = 1 << 20;
  MllamaTowerConfig out;
  out.out_dim = out_dim;
  ASSIGN_OR_RETURN(out.pictures, read_mllama_pictures(config));
  const ConfigReader reader(*config.raw.find("vision_config"), config.path + "/config.json: vision_config");
  ASSIGN_OR_RETURN(out.dim, reader.integer("hidden_size", 1, kMaxDim, 1280));
  ASSIGN_OR_RETURN(out.hidden_dim, reader.integer("intermediate_size", 1, kMaxDim, 5120));
  ASSIGN_OR_RETURN(out.layers, reader.integer("num_hidden_layers", 1, kMaxLayers, 32));
  ASSIGN_OR_RETURN(out.global_layers, reader.integer("num_global_layers", 0, kMaxLayers, 8));
  const char* const heads = reader.has("num_attention_heads") ? "num_attention_heads" : "attention_heads";
  ASSIGN_OR_RETURN(out.heads, reader.integer(heads, 1, kMaxHeads, 16));
  if (out.dim % out.heads != 0) {
    return reader.error(heads, str_cat(out.heads, " heads do not divide hidden_size ", out.dim));
  }
  ASSIGN_OR_RETURN(const double epsilon, reader.number("norm_eps", 0, 1, 1e-5));
  out.epsilon = static_cast<float>(epsilon);
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "hidden_act", "gelu"));
  RETURN_IF_ERROR(read_kept(reader, out));
  return out;
}

StatusOr<Encoder> load_mllama_tower(const MllamaTowerConfig& config, const std::string& prefix,
                                    const std::string& projector, WeightMap& weights, const ModelLoadOptions& options) {
  return MllamaTowerLoader(config, prefix, weights, options).load(projector);
}

}  // namespace transept
