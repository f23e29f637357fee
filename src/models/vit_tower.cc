// ViT (Dosovitskiy et al. 2020) and DeiT (Touvron et al. 2020): patches behind a class token, which DeiT follows by a
// distillation token; learned positions, pre-norm layers, a norm behind the last. The pooler is not read: consumers get
// rows. Checkpoints: the towers of microsoft/trocr-*, nlpconnect/vit-gpt2-image-captioning. Source: transformers,
// models/vit/modeling_vit.py, models/deit/modeling_deit.py.
#include <cmath>

#include "core/picture_size_field.h"
#include "models/activation_field.h"
#include "models/patch_input.h"
#include "models/vision_tower.h"

namespace transept {
namespace {

constexpr int64_t kChannels = PatchInput::kChannels;

struct VitConfig {
  int64_t hidden_size = 0, intermediate_size = 0;
  int64_t layers = 0, heads = 0;
  PictureSize picture, patch;
  int64_t num_tokens = 1;  // before the patches
  Activation activation = Activation::kGelu;
  float epsilon = 1e-12f;
  bool qkv_bias = true;

  int64_t num_patches() const { return (picture.height / patch.height) * (picture.width / patch.width); }
  int64_t num_positions() const { return num_tokens + num_patches(); }
  bool has_distillation() const { return num_tokens == 2; }
};

Status read_pictures(const Json& config, const ConfigReader& reader, VitConfig& out) {
  constexpr int64_t kMaxSide = 1 << 15, kMaxPatch = 1 << 10;
  ASSIGN_OR_RETURN(out.picture, read_picture_size(config, reader, "image_size", kMaxSide, 224));
  ASSIGN_OR_RETURN(out.patch, read_picture_size(config, reader, "patch_size", kMaxPatch, 16));
  ASSIGN_OR_RETURN(const int64_t channels, reader.integer("num_channels", 1, kMaxPatch, kChannels));
  if (channels != kChannels) {
    return with_param(unimplemented(reader.file(), ": num_channels: ", channels, " is not supported, only 3"),
                      "num_channels");
  }
  if (out.num_patches() == 0) return reader.error("patch_size", "is larger than image_size");
  if (out.num_positions() <= ModelSpec::kMaxPositions) return ok_status();
  return reader.error("image_size", str_cat("gives ", out.num_positions(), " positions, over the ",
                                            ModelSpec::kMaxPositions, " allowed"));
}

StatusOr<VitConfig> read_vit_tower_config(const Json& config, const std::string& file) {
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxDim = 1 << 20;
  const ConfigReader reader(config, file);
  VitConfig out;
  ASSIGN_OR_RETURN(const std::string model_type, reader.string("model_type"));
  out.num_tokens = model_type == "deit" ? 2 : 1;
  ASSIGN_OR_RETURN(out.hidden_size, reader.integer("hidden_size", 1, kMaxDim, 768));
  ASSIGN_OR_RETURN(out.intermediate_size, reader.integer("intermediate_size", 1, kMaxDim, 3072));
  ASSIGN_OR_RETURN(out.layers, reader.integer("num_hidden_layers", 1, kMaxLayers, 12));
  ASSIGN_OR_RETURN(out.heads, reader.integer("num_attention_heads", 1, kMaxHeads, 12));
  if (out.hidden_size % out.heads != 0) {
    return reader.error("num_attention_heads",
                        str_cat(out.heads, " heads do not divide hidden_size ", out.hidden_size));
  }
  ASSIGN_OR_RETURN(const double epsilon, reader.number("layer_norm_eps", 0, 1, 1e-12));
  out.epsilon = static_cast<float>(epsilon);
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "hidden_act", "gelu"));
  ASSIGN_OR_RETURN(out.qkv_bias, reader.boolean("qkv_bias", true));
  RETURN_IF_ERROR(read_pictures(config, reader, out));
  return out;
}

StatusOr<std::unique_ptr<EncoderInput>> load_input(const VitConfig& config, const std::string& prefix,
                                                   WeightMap& weights, const PackOptions& packing) {
  weights.ignore(prefix + "mask_token");  // of training on masked pictures
  PatchInput::Options options{.picture = config.picture,
                              .patch = config.patch,
                              .dim = config.hidden_size,
                              .projection = prefix + "patch_embeddings.projection",
                              .positions = prefix + "position_embeddings",
                              .tokens = {prefix + "cls_token"}};
  if (config.has_distillation()) options.tokens.push_back(prefix + "distillation_token");
  return PatchInput::load(options, weights, packing);
}

// How a file names the parts of a layer: as transformers before 5.x, whose names it still writes, or as its classes do.
struct LayerNames {
  const char *layer, *q, *k, *v, *out, *up, *down;
};
constexpr LayerNames kPublished = {"encoder.layer.", "attention.query",    "attention.key", "attention.value",
                                   "output.dense",   "intermediate.dense", "output.dense"};
constexpr LayerNames kByClass = {"layers.", "q_proj", "k_proj", "v_proj", "o_proj", "mlp.fc1", "mlp.fc2"};

class VitTowerLoader final {
 public:
  VitTowerLoader(const VitConfig& config, const std::string& prefix, WeightMap& weights,
                 const ModelLoadOptions& options)
      : config_(config), prefix_(prefix), weights_(weights), options_(options) {}

  StatusOr<Encoder> load() {
    weights_.ignore_below(prefix_ + "pooler.");
    ASSIGN_OR_RETURN(std::unique_ptr<EncoderInput> input,
                     load_input(config_, prefix_ + "embeddings.", weights_, options_.packing));
    const std::string probe = str_cat(prefix_, kByClass.layer, "0.layernorm_before.weight");
    const LayerNames& names = weights_.contains(probe) ? kByClass : kPublished;
    StackParts parts;
    for (int64_t i = 0; i < config_.layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(prefix_, names.layer, i, "."), names));
      parts.layers.push_back(std::move(loaded));
    }
    ASSIGN_OR_RETURN(parts.final_norm, norm(prefix_ + "layernorm"));
    ASSIGN_OR_RETURN(TransformerStack stack, TransformerStack::make(std::move(parts), options_.attention));
    return Encoder{std::move(input), std::move(stack)};
  }

 private:
  StatusOr<TransformerLayer> layer(const std::string& prefix, const LayerNames& names) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + "layernorm_before"));
    ASSIGN_OR_RETURN(SelfAttention self,
                     SelfAttention::load(weights_, attention_options(prefix + "attention", names), options_.packing));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + "layernorm_after"));
    const FeedForward::Options options{prefix + names.up, prefix + names.down, config_.hidden_size,
                                       config_.intermediate_size, config_.activation};
    ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights_, options, options_.packing));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  AttentionOptions attention_options(const std::string& prefix, const LayerNames& names) const {
    AttentionOptions options;
    options.prefix = prefix;
    options.q = names.q;
    options.k = names.k;
    options.v = names.v;
    options.out = names.out;
    options.dim = config_.hidden_size;
    options.num_heads = config_.heads;
    options.scale = 1.0f / std::sqrt(static_cast<float>(options.width_of_head()));
    options.qkv_has_bias = config_.qkv_bias;
    return options;
  }

  StatusOr<Norm> norm(const std::string& prefix) {
    return Norm::load(weights_, prefix, config_.hidden_size, {.epsilon = config_.epsilon});
  }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm loaded, norm(prefix));
    return Residual{std::move(loaded), NormPlace::kBefore};
  }

  const VitConfig& config_;
  const std::string& prefix_;
  WeightMap& weights_;
  const ModelLoadOptions& options_;
};

class VitTower final : public VisionTower {
 public:
  explicit VitTower(const VitConfig& config) : config_(config) {}

  VisionTowerSizes sizes() const override {
    const auto positions = static_cast<int32_t>(config_.num_positions());
    return {static_cast<int32_t>(config_.hidden_size), positions, positions};
  }

  StatusOr<Encoder> load(const std::string& prefix, WeightMap& weights,
                         const ModelLoadOptions& options) const override {
    return VitTowerLoader(config_, prefix, weights, options).load();
  }

 private:
  const VitConfig config_;
};

}  // namespace

StatusOr<std::unique_ptr<VisionTower>> make_vit_tower(const Json& config, const std::string& file) {
  ASSIGN_OR_RETURN(const VitConfig sizes, read_vit_tower_config(config, file));
  return std::unique_ptr<VisionTower>(std::make_unique<VitTower>(sizes));
}

}  // namespace transept
