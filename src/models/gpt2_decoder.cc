// GPT-2 (Radford et al. 2019) as the decoder of a composite model: pre-norm layers whose matrices are stored
// transposed, with cross-attention behind self-attention, learned positions and a norm behind the last layer.
// Checkpoints: nlpconnect/vit-gpt2-image-captioning. Source: transformers, models/gpt2/modeling_gpt2.py.
#include <cmath>

#include "models/activation_field.h"
#include "models/text_decoder.h"

namespace transept {
namespace {

struct Gpt2Config {
  int64_t vocab_size = 0, width = 0, inner = 0;
  int64_t layers = 0, heads = 0, max_positions = 0;
  Activation activation = Activation::kGeluTanh;
  float epsilon = 1e-5f;
  bool scales_scores = true;     // by 1 / sqrt(head_dim)
  bool scales_by_layer = false;  // by 1 / (the layer's index + 1), too
  bool tied = true;
  bool names_cross_width = false;  // cross_attention_hidden_size is there

  int64_t head_dim() const { return width / heads; }
  float scale(int64_t layer) const {
    const float by_head = scales_scores ? 1.0f / std::sqrt(static_cast<float>(head_dim())) : 1.0f;
    return scales_by_layer ? by_head / static_cast<float>(layer + 1) : by_head;
  }
};

// reorder_and_upcast_attn changes the order of roundings in 16 bits alone, and is not read.
StatusOr<Gpt2Config> read_gpt2_decoder_config(const Json& config, const std::string& file) {
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxDim = 1 << 20;
  const ConfigReader reader(config, file);
  Gpt2Config out;
  ASSIGN_OR_RETURN(out.vocab_size, reader.integer("vocab_size", 1, ModelConfig::kMaxVocabSize));
  ASSIGN_OR_RETURN(out.width, reader.integer("n_embd", 1, kMaxDim, 768));
  ASSIGN_OR_RETURN(out.inner, reader.integer("n_inner", 1, 4 * kMaxDim, 4 * out.width));
  ASSIGN_OR_RETURN(out.layers, reader.integer("n_layer", 1, kMaxLayers, 12));
  ASSIGN_OR_RETURN(out.heads, reader.integer("n_head", 1, kMaxHeads, 12));
  if (out.width % out.heads != 0) {
    return reader.error("n_head", str_cat(out.heads, " heads do not divide n_embd ", out.width));
  }
  ASSIGN_OR_RETURN(out.max_positions, reader.integer("n_positions", 1, ModelSpec::kMaxPositions, 1024));
  ASSIGN_OR_RETURN(out.activation, read_activation(reader, "activation_function", "gelu_new"));
  ASSIGN_OR_RETURN(const double epsilon, reader.number("layer_norm_epsilon", 0, 1, 1e-5));
  out.epsilon = static_cast<float>(epsilon);
  ASSIGN_OR_RETURN(out.scales_scores, reader.boolean("scale_attn_weights", true));
  ASSIGN_OR_RETURN(out.scales_by_layer, reader.boolean("scale_attn_by_inverse_layer_idx", false));
  ASSIGN_OR_RETURN(out.tied, reader.boolean("tie_word_embeddings", true));
  out.names_cross_width = reader.has("cross_attention_hidden_size");
  ASSIGN_OR_RETURN(const bool crosses, reader.boolean("add_cross_attention", false));
  if (!crosses) return reader.error("add_cross_attention", "false: a decoder without cross-attention sees no picture");
  return out;
}

class Gpt2DecoderLoader final {
 public:
  Gpt2DecoderLoader(const Gpt2Config& config, WeightMap& weights, const ModelLoadOptions& options)
      : config_(config), weights_(weights), packing_(options.packing), attention_(options.attention) {}

  StatusOr<Decoder> load() {
    const std::string table = prefix_ + "wte.weight", output = "decoder.lm_head.weight";
    ASSIGN_OR_RETURN(Embedding tokens, Embedding::load(weights_, table, config_.vocab_size, config_.width));
    ASSIGN_OR_RETURN(Embedding positions,
                     Embedding::load(weights_, prefix_ + "wpe.weight", config_.max_positions, config_.width));
    if (config_.tied) weights_.ignore(output);
    ASSIGN_OR_RETURN(LmHead head, LmHead::load(weights_, config_.tied ? table : output, config_.vocab_size,
                                               config_.width, {}, packing_));
    ASSIGN_OR_RETURN(TransformerStack layers, stack());
    TokenInput input{.tokens = std::move(tokens), .positions = std::move(positions)};
    return Decoder{std::move(input), std::move(layers), std::move(head)};
  }

 private:
  StatusOr<TransformerStack> stack() {
    StackParts parts;
    for (int64_t i = 0; i < config_.layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(prefix_, "h.", i, "."), config_.scale(i)));
      parts.layers.push_back(std::move(loaded));
    }
    ASSIGN_OR_RETURN(parts.final_norm, norm(prefix_ + "ln_f"));
    return TransformerStack::make(std::move(parts), attention_);
  }

  StatusOr<TransformerLayer> layer(const std::string& prefix, float scale) {
    // Masks: buffers that older files hold.
    for (const char* name : {"attn.bias", "attn.masked_bias", "crossattention.bias", "crossattention.masked_bias"}) {
      weights_.ignore(prefix + name);
    }
    TransformerLayer layer;
    ASSIGN_OR_RETURN(Residual self_sum, residual(prefix + "ln_1"));
    ASSIGN_OR_RETURN(SelfAttention self,
                     SelfAttention::load(weights_, attention_options(prefix + "attn", scale), packing_));
    layer.self = Sublayer<SelfAttention>{std::move(self), std::move(self_sum)};
    ASSIGN_OR_RETURN(Residual cross_sum, residual(prefix + "ln_cross_attn"));
    ASSIGN_OR_RETURN(CrossAttention cross,
                     CrossAttention::load(weights_, attention_options(prefix + "crossattention", scale), packing_));
    layer.cross = Sublayer<CrossAttention>{std::move(cross), std::move(cross_sum)};
    ASSIGN_OR_RETURN(Residual ffn_sum, residual(prefix + "ln_2"));
    FeedForward::Options options{prefix + "mlp.c_fc", prefix + "mlp.c_proj", config_.width, config_.inner,
                                 config_.activation};
    options.is_transposed = true;
    ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights_, options, packing_));
    layer.feed_forward = Sublayer<FeedForward>{std::move(ffn), std::move(ffn_sum)};
    return layer;
  }

  AttentionOptions attention_options(const std::string& prefix, float scale) const {
    AttentionOptions options;
    options.prefix = prefix;
    options.q = "q_attn";
    options.fused = "c_attn";
    options.out = "c_proj";
    options.is_transposed = true;
    options.dim = config_.width;
    options.num_heads = config_.heads;
    options.scale = scale;
    return options;
  }

  StatusOr<Norm> norm(const std::string& prefix) {
    return Norm::load(weights_, prefix, config_.width, {.epsilon = config_.epsilon});
  }

  StatusOr<Residual> residual(const std::string& prefix) {
    ASSIGN_OR_RETURN(Norm loaded, norm(prefix));
    return Residual{std::move(loaded), NormPlace::kBefore};
  }

  const Gpt2Config& config_;
  WeightMap& weights_;
  const PackOptions& packing_;
  const AttentionBackend& attention_;
  const std::string prefix_ = "decoder.transformer.";
};

class Gpt2Decoder final : public TextDecoder {
 public:
  explicit Gpt2Decoder(const Gpt2Config& config) : config_(config) {}

  TextDecoderSizes sizes() const override {
    const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
    return {.width = i32(config_.width),
            .vocab_size = i32(config_.vocab_size),
            .max_positions = i32(config_.max_positions),
            .num_layers = i32(config_.layers),
            .num_heads = i32(config_.heads),
            .cross_width = i32(config_.width),
            .names_cross_width = config_.names_cross_width};
  }

  StatusOr<Decoder> load(WeightMap& weights, const ModelLoadOptions& options) const override {
    return Gpt2DecoderLoader(config_, weights, options).load();
  }

 private:
  const Gpt2Config config_;
};

}  // namespace

StatusOr<std::unique_ptr<TextDecoder>> make_gpt2_decoder(const Json& config, const std::string& file) {
  ASSIGN_OR_RETURN(const Gpt2Config sizes, read_gpt2_decoder_config(config, file));
  return std::unique_ptr<TextDecoder>(std::make_unique<Gpt2Decoder>(sizes));
}

}  // namespace transept
