// The tower of BLIP (Li et al. 2022): a ViT whose layers hold q, k and v as one matrix, with a norm behind the last.
// Consumers get rows of all patches and of the class. Checkpoints: the towers of Salesforce/blip-image-captioning-*.
// Source: transformers, models/blip/modeling_blip.py (BlipVisionModel).
#include <cmath>

#include "models/activation_field.h"
#include "models/patch_input.h"
#include "models/vision_tower.h"

namespace transept {
namespace {

struct BlipTowerConfig {
  int64_t width = 0, inner = 0;
  int64_t layers = 0, heads = 0;
  PictureSize picture, patch;
  Activation activation = Activation::kGelu;
  float epsilon = 1e-5f;

  int64_t num_patches() const { return (picture.height / patch.height) * (picture.width / patch.width); }
  int64_t num_positions() const { return 1 + num_patches(); }
};

StatusOr<BlipTowerConfig> read_blip_tower_config(const Json& config, const std::string& file) {
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxDim = 1 << 20, kMaxSide = 1 << 15, kMaxPatch = 1 << 10;
  const ConfigReader reader(config, file);
  BlipTowerConfig out;
  ASSIGN_OR_RETURN(out.width, reader.integer("hidden_size", 1, kMaxDim, 768));
  ASSIGN_OR_RETURN(out.inner, reader.integer("intermediate_size", 1, kMaxDim, 3072));
  ASSIGN_OR_RETURN(out.layers, reader.integer("num_hidden_layers", 1, kMaxLayers, 12));
  ASSIGN_OR_RETURN(out.heads, reader.integer("num_attention_heads", 1, kMaxHeads, 12));
  if (out.width % out.heads != 0) {
    return reader.error("num_attention_heads", str_cat(out.heads, " heads do not divide hidden_size ", out.width));
  }
  ASSIGN_OR_RETURN(const double epsilon, reader.number("layer_norm_eps", 0, 1, 1e-5));
  out.epsilon = static_cast<float>(epsilon);
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "hidden_act", "gelu"));
  ASSIGN_OR_RETURN(out.picture, read_picture_size(config, reader, "image_size", kMaxSide, 384));
  ASSIGN_OR_RETURN(out.patch, read_picture_size(config, reader, "patch_size", kMaxPatch, 16));
  if (out.num_patches() == 0) return reader.error("patch_size", "is larger than image_size");
  if (out.num_positions() <= ModelSpec::kMaxPositions) return out;
  return reader.error("image_size", str_cat("gives ", out.num_positions(), " positions, over the ",
                                            ModelSpec::kMaxPositions, " allowed"));
}

class BlipTowerLoader final {
 public:
  BlipTowerLoader(const BlipTowerConfig& config, const std::string& prefix, WeightMap& weights,
                  const ModelLoadOptions& options)
      : config_(config), prefix_(prefix), weights_(weights), options_(options) {}

  StatusOr<Encoder> load() {
    const std::string embeddings = prefix_ + "embeddings.";
    const PatchInput::Options input_options{.picture = config_.picture,
                                            .patch = config_.patch,
                                            .dim = config_.width,
                                            .projection = embeddings + "patch_embedding",
                                            .positions = embeddings + "position_embedding",
                                            .tokens = {embeddings + "class_embedding"}};
    ASSIGN_OR_RETURN(std::unique_ptr<EncoderInput> input, PatchInput::load(input_options, weights_, options_.packing));
    StackParts parts;
    for (int64_t i = 0; i < config_.layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(prefix_, "encoder.layers.", i, ".")));
      parts.layers.push_back(std::move(loaded));
    }
    ASSIGN_OR_RETURN(parts.final_norm, norm(prefix_ + "post_layernorm"));
    ASSIGN_OR_RETURN(TransformerStack stack, TransformerStack::make(std::move(parts), options_.attention));
    return Encoder{std::move(input), std::move(stack)};
  }

 private:
  StatusOr<TransformerLayer> layer(const std::string& prefix) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + "layer_norm1"));
    ASSIGN_OR_RETURN(SelfAttention self,
                     SelfAttention::load(weights_, attention_options(prefix + "self_attn"), options_.packing));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + "layer_norm2"));
    const FeedForward::Options options{prefix + "mlp.fc1", prefix + "mlp.fc2", config_.width, config_.inner,
                                       config_.activation};
    ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights_, options, options_.packing));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  AttentionOptions attention_options(const std::string& prefix) const {
    AttentionOptions options;
    options.prefix = prefix;
    options.fused = "qkv";
    options.out = "projection";
    options.dim = config_.width;
    options.num_heads = config_.heads;
    options.scale = 1.0f / std::sqrt(static_cast<float>(options.width_of_head()));
    return options;
  }

  StatusOr<Norm> norm(const std::string& prefix) {
    return Norm::load(weights_, prefix, config_.width, {.epsilon = config_.epsilon});
  }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm loaded, norm(prefix));
    return Residual{std::move(loaded), NormPlace::kBefore};
  }

  const BlipTowerConfig& config_;
  const std::string& prefix_;
  WeightMap& weights_;
  const ModelLoadOptions& options_;
};

class BlipTower final : public VisionTower {
 public:
  explicit BlipTower(const BlipTowerConfig& config) : config_(config) {}

  VisionTowerSizes sizes() const override {
    const auto positions = static_cast<int32_t>(config_.num_positions());
    return {static_cast<int32_t>(config_.width), positions, positions};
  }

  StatusOr<Encoder> load(const std::string& prefix, WeightMap& weights,
                         const ModelLoadOptions& options) const override {
    return BlipTowerLoader(config_, prefix, weights, options).load();
  }

 private:
  const BlipTowerConfig config_;
};

}  // namespace

StatusOr<std::unique_ptr<VisionTower>> make_blip_tower(const Json& config, const std::string& file) {
  ASSIGN_OR_RETURN(const BlipTowerConfig sizes, read_blip_tower_config(config, file));
  return std::unique_ptr<VisionTower>(std::make_unique<BlipTower>(sizes));
}

}  // namespace transept
