// The tower of Pix2Struct (Lee et al. 2023): patches that know their row and column, from 1; pre-norm layers with RMS
// norms and a gated feed-forward, without biases and without a scale of the scores. Source: transformers,
// models/pix2struct/modeling_pix2struct.py (Pix2StructVisionModel).
//
// The reference runs over max_patches rows, masks those that pad, and masks them again in the decoder; here a picture
// has the rows in use alone.
#include <algorithm>

#include "layers/embedding.h"
#include "models/activation_field.h"
#include "models/vision_tower.h"
#include "ops/rows.h"

namespace transept {
namespace {

constexpr int64_t kIds = 2;  // row and column, before the pixels of a patch

struct Pix2StructTowerConfig {
  int64_t width = 0, patch_width = 0, inner = 0;
  int64_t layers = 0, heads = 0, head_dim = 0;
  int64_t num_places = 0;  // rows and columns that have a place in the tables
  Activation activation = Activation::kGeluTanh;
  float epsilon = 1e-6f;
};

StatusOr<Pix2StructTowerConfig> read_pix2struct_tower_config(const Json& config, const std::string& file) {
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxHeadDim = 1024, kMaxDim = 1 << 20;
  const ConfigReader reader(config, file);
  Pix2StructTowerConfig out;
  ASSIGN_OR_RETURN(out.width, reader.integer("hidden_size", 1, kMaxDim, 768));
  ASSIGN_OR_RETURN(out.patch_width, reader.integer("patch_embed_hidden_size", 1, kMaxDim, 768));
  ASSIGN_OR_RETURN(out.inner, reader.integer("d_ff", 1, kMaxDim, 2048));
  ASSIGN_OR_RETURN(out.layers, reader.integer("num_hidden_layers", 1, kMaxLayers, 12));
  ASSIGN_OR_RETURN(out.heads, reader.integer("num_attention_heads", 1, kMaxHeads, 12));
  ASSIGN_OR_RETURN(out.head_dim, reader.integer("d_kv", 1, kMaxHeadDim, 64));
  ASSIGN_OR_RETURN(out.num_places, reader.integer("seq_len", 2, ModelSpec::kMaxPositions, 4096));
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "dense_act_fn", "gelu_new"));
  ASSIGN_OR_RETURN(const double epsilon, reader.number("layer_norm_eps", 0, 1, 1e-6));
  out.epsilon = static_cast<float>(epsilon);
  return out;
}

// [patches, 2 + pixels] -> pixels' projection + embeddings of row and column.
class FlatPatchInput final : public EncoderInput {
 public:
  static StatusOr<std::unique_ptr<EncoderInput>> load(const Pix2StructTowerConfig& config, const std::string& prefix,
                                                      WeightMap& weights, const PackOptions& packing) {
    const LinearSource source{prefix + "patch_projection.weight", prefix + "patch_projection.bias", config.width};
    ASSIGN_OR_RETURN(Linear projection,
                     Linear::load(weights, {{source}, config.patch_width, LayerInputs::kConvolution}, packing));
    const auto table = [&](const char* name) {
      return Embedding::load(weights, prefix + name, config.num_places, config.width);
    };
    ASSIGN_OR_RETURN(Embedding rows, table("row_embedder.weight"));
    ASSIGN_OR_RETURN(Embedding columns, table("column_embedder.weight"));
    return std::unique_ptr<EncoderInput>(
        new FlatPatchInput(config, std::move(projection), std::move(rows), std::move(columns)));
  }

  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override {
    int64_t row = 0;
    for (size_t i = 0; i < batch.attention.seq_lens.size(); ++i) {
      const int64_t end = row + batch.attention.seq_lens[i];
      FeaturesView patches;
      if (!context.dry_run) patches = checked(batch.features[i], end - row);
      for (int64_t begin = row; begin < end; begin += kPatchesAtOnce) {
        run(context, patches, begin - row, x.rows(begin, std::min(begin + kPatchesAtOnce, end)));
      }
      row = end;
    }
  }

 private:
  static constexpr int64_t kPatchesAtOnce = 1024;  // bounds the step memory of pixels

  FlatPatchInput(const Pix2StructTowerConfig& config, Linear projection, Embedding rows, Embedding columns)
      : stride_(kIds + config.patch_width),
        num_places_(config.num_places),
        projection_(std::move(projection)),
        rows_(std::move(rows)),
        columns_(std::move(columns)) {}

  FeaturesView checked(const FeaturesView& features, int64_t num_positions) const {
    const std::span<const int64_t> shape = features.shape;
    CHECK(shape.size() == 2 && shape[0] == num_positions && shape[1] == stride_, "features of ", shape.size(),
          " axes for ", num_positions, " patches of ", stride_, " numbers");
    return features;
  }

  // Patches from `first`, as many as y has rows.
  void run(Context& context, const FeaturesView& patches, int64_t first, const TensorView& y) const {
    const Arena::Scope scope(context.arena);
    const TensorView pixels = context.arena.tensor(DType::kFloat32, {y.dim(0), stride_ - kIds});
    const auto patch = [&](int64_t i) { return patches.values.subspan(static_cast<size_t>((first + i) * stride_)); };
    const auto copy_pixels = [&](int64_t i, std::span<float> row) {
      std::ranges::copy(patch(i).subspan(kIds, row.size()), row.begin());
    };
    write_rows(context, copy_pixels, pixels);
    projection_.forward(context, pixels, {}, y);
    rows_.add(
        context, [&](int64_t i) { return place(patch(i)[0]); }, y);
    columns_.add(
        context, [&](int64_t i) { return place(patch(i)[1]); }, y);
  }

  // The doors have refused ids that have no place (multimodal/image_rows.h). What comes here all the same reads a
  // place that there is.
  int64_t place(float id) const {
    return id > 0 ? static_cast<int64_t>(std::min(id, static_cast<float>(num_places_ - 1))) : 0;
  }

  const int64_t stride_;  // numbers of a patch
  const int64_t num_places_;
  Linear projection_;
  Embedding rows_, columns_;
};

class Pix2StructTowerLoader final {
 public:
  Pix2StructTowerLoader(const Pix2StructTowerConfig& config, const std::string& prefix, WeightMap& weights,
                        const ModelLoadOptions& options)
      : config_(config), prefix_(prefix), weights_(weights), options_(options) {}

  StatusOr<Encoder> load() {
    ASSIGN_OR_RETURN(std::unique_ptr<EncoderInput> input,
                     FlatPatchInput::load(config_, prefix_ + "embeddings.", weights_, options_.packing));
    StackParts parts;
    for (int64_t i = 0; i < config_.layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(prefix_, "encoder.layer.", i, ".")));
      parts.layers.push_back(std::move(loaded));
    }
    ASSIGN_OR_RETURN(parts.final_norm, norm(prefix_ + "layernorm"));
    ASSIGN_OR_RETURN(TransformerStack stack, TransformerStack::make(std::move(parts), options_.attention));
    return Encoder{std::move(input), std::move(stack)};
  }

 private:
  StatusOr<TransformerLayer> layer(const std::string& prefix) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + "pre_attention_layer_norm"));
    AttentionOptions attention;
    attention.prefix = prefix + "attention";
    attention.q = "query", attention.k = "key", attention.v = "value", attention.out = "output";
    attention.dim = config_.width;
    attention.num_heads = config_.heads;
    attention.head_dim = config_.head_dim;
    attention.scale = 1;
    attention.has_biases = false;
    ASSIGN_OR_RETURN(SelfAttention self, SelfAttention::load(weights_, attention, options_.packing));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + "pre_mlp_layer_norm"));
    FeedForward::Options gated;
    gated.up = prefix + "mlp.wi_1";
    gated.gate = prefix + "mlp.wi_0";
    gated.down = prefix + "mlp.wo";
    gated.dim = config_.width;
    gated.hidden_dim = config_.inner;
    gated.activation = config_.activation;
    gated.has_biases = false;
    gated.down_inputs = LayerInputs::kOutliers;  // as of T5
    ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights_, gated, options_.packing));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  StatusOr<Norm> norm(const std::string& prefix) {
    return Norm::load(weights_, prefix, config_.width, {.kind = NormKind::kRms, .epsilon = config_.epsilon});
  }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm loaded, norm(prefix));
    return Residual{std::move(loaded), NormPlace::kBefore};
  }

  const Pix2StructTowerConfig& config_;
  const std::string& prefix_;
  WeightMap& weights_;
  const ModelLoadOptions& options_;
};

// Any number of patches up to seq_len, which is what the reference calls the longest sequence.
class Pix2StructTower final : public VisionTower {
 public:
  explicit Pix2StructTower(const Pix2StructTowerConfig& config) : config_(config) {}

  VisionTowerSizes sizes() const override {
    const auto positions = static_cast<int32_t>(config_.num_places);
    return {static_cast<int32_t>(config_.width), positions, positions};
  }

  StatusOr<Encoder> load(const std::string& prefix, WeightMap& weights,
                         const ModelLoadOptions& options) const override {
    return Pix2StructTowerLoader(config_, prefix, weights, options).load();
  }

 private:
  const Pix2StructTowerConfig config_;
};

}  // namespace

StatusOr<std::unique_ptr<VisionTower>> make_pix2struct_tower(const Json& config, const std::string& file) {
  ASSIGN_OR_RETURN(const Pix2StructTowerConfig sizes, read_pix2struct_tower_config(config, file));
  return std::unique_ptr<VisionTower>(std::make_unique<Pix2StructTower>(sizes));
}

}  // namespace transept
