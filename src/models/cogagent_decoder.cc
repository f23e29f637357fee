#include "models/cogagent_decoder.h"

#include <cmath>

#include "models/activation_field.h"

namespace transept {
namespace {

constexpr double kTheta = 10000;  // the published code's own

class CogAgentDecoderLoader final {
 public:
  CogAgentDecoderLoader(const CogAgentDecoderConfig& config, const std::string& prefix, WeightMap& weights,
                        const ModelLoadOptions& options)
      : config_(config), sizes_(config.sizes), prefix_(prefix), weights_(weights), options_(options) {}

  StatusOr<Decoder> load() {
    ASSIGN_OR_RETURN(Embedding tokens,
                     Embedding::load(weights_, prefix_ + "embed_tokens.weight", config_.vocab_size, sizes_.dim));
    ASSIGN_OR_RETURN(LmHead head,
                     LmHead::load(weights_, "lm_head.weight", config_.vocab_size, sizes_.dim, {}, options_.packing));
    StackParts parts;
    for (int64_t i = 0; i < config_.layers; ++i) {
      ASSIGN_OR_RETURN(TransformerLayer loaded, layer(str_cat(prefix_, "layers.", i, ".")));
      parts.layers.push_back(std::move(loaded));
    }
    ASSIGN_OR_RETURN(parts.final_norm, Norm::load(weights_, prefix_ + "norm", sizes_.dim,
                                                  {.kind = NormKind::kRms, .epsilon = sizes_.epsilon}));
    parts.rope = {rope_frequencies(sizes_.head_dim(), kTheta), RopePairs::kHalves};
    ASSIGN_OR_RETURN(TransformerStack stack, TransformerStack::make(std::move(parts), options_.attention));
    return Decoder{TokenInput{.tokens = std::move(tokens)}, std::move(stack), std::move(head)};
  }

 private:
  StatusOr<TransformerLayer> layer(const std::string& prefix) {
    TransformerLayer layer;
    ASSIGN_OR_RETURN(layer.self, self_attention(prefix));
    ASSIGN_OR_RETURN(layer.cross, cross_attention(prefix));
    ASSIGN_OR_RETURN(Residual sum, load_llama_residual(sizes_, prefix + "post_attention_layernorm", weights_));
    ASSIGN_OR_RETURN(FeedForward of_text, feed_forward(prefix + "mlp.language_mlp."));
    ASSIGN_OR_RETURN(layer.expert_feed_forward, feed_forward(prefix + "mlp.vision_mlp."));
    layer.feed_forward = Sublayer<FeedForward>{std::move(of_text), std::move(sum)};
    return layer;
  }

  StatusOr<Sublayer<SelfAttention>> self_attention(const std::string& prefix) {
    weights_.ignore(prefix + "self_attn.rotary_emb.inv_freq");  // a buffer, which is computed
    ASSIGN_OR_RETURN(Residual sum, load_llama_residual(sizes_, prefix + "input_layernorm", weights_));
    AttentionOptions options = llama_attention_options(sizes_, prefix + "self_attn");
    options.fused = "language_expert_query_key_value";
    options.out = "language_expert_dense";
    options.expert_fused = "vision_expert_query_key_value";
    options.expert_out = "vision_expert_dense";
    ASSIGN_OR_RETURN(SelfAttention self, SelfAttention::load(weights_, options, options_.packing));
    return Sublayer<SelfAttention>{std::move(self), std::move(sum)};
  }

  StatusOr<Sublayer<CrossAttention>> cross_attention(const std::string& prefix) {
    // The norm before it, whatever its name says.
    ASSIGN_OR_RETURN(Residual sum, load_llama_residual(sizes_, prefix + "post_cross_attention_layernorm", weights_));
    AttentionOptions options;
    options.prefix = prefix + "cross_attn";
    options.q = "query";
    options.fused = "key_value";
    options.out = "dense";
    options.dim = sizes_.dim;
    options.kv_dim = config_.cross_dim;
    options.num_heads = sizes_.heads;
    options.head_dim = config_.cross_head_dim();
    options.scale = 1.0f / std::sqrt(static_cast<float>(options.head_dim));
    options.has_biases = false;
    ASSIGN_OR_RETURN(CrossAttention cross, CrossAttention::load(weights_, options, options_.packing));
    return Sublayer<CrossAttention>{std::move(cross), std::move(sum)};
  }

  StatusOr<FeedForward> feed_forward(const std::string& prefix) {
    FeedForward::Options options{prefix + "up_proj", prefix + "down_proj", sizes_.dim, sizes_.hidden_dim,
                                 sizes_.activation};
    options.gate = prefix + "gate_proj";
    options.has_biases = false;
    return FeedForward::load(weights_, options, options_.packing);
  }

  const CogAgentDecoderConfig& config_;
  const LlamaSizes& sizes_;
  const std::string& prefix_;
  WeightMap& weights_;
  const ModelLoadOptions& options_;
};

Status read_cross(const ConfigReader& reader, CogAgentDecoderConfig& out) {
  constexpr int64_t kMaxDim = 1 << 20;
  ASSIGN_OR_RETURN(out.cross_dim, reader.integer("cross_hidden_size", 1, kMaxDim, 1024));
  ASSIGN_OR_RETURN(const int64_t compute, reader.integer("cross_compute_hidden_size", 1, kMaxDim, 1024));
  if (compute != out.cross_dim) {
    return with_param(
        unimplemented(reader.file(), ": cross_compute_hidden_size: ", compute, " is not cross_hidden_size ",
                      out.cross_dim, ", with which the published code fails"),
        "cross_compute_hidden_size");
  }
  if (compute % out.sizes.heads == 0) return ok_status();
  return reader.error("cross_compute_hidden_size",
                      str_cat("the ", out.sizes.heads, " heads of num_attention_heads do not divide ", compute));
}

}  // namespace

StatusOr<CogAgentDecoderConfig> read_cogagent_decoder(const ModelConfig& config) {
  constexpr int64_t kMaxLayers = 1000, kMaxHeads = 1024, kMaxDim = 1 << 20;
  const ConfigReader reader(config.raw, config.path + "/config.json");
  CogAgentDecoderConfig out;
  LlamaSizes& sizes = out.sizes;
  ASSIGN_OR_RETURN(out.vocab_size, reader.integer("vocab_size", 1, ModelConfig::kMaxVocabSize, 32000));
  ASSIGN_OR_RETURN(sizes.dim, reader.integer("hidden_size", 1, kMaxDim, 4096));
  ASSIGN_OR_RETURN(sizes.hidden_dim, reader.integer("intermediate_size", 1, kMaxDim, 11008));
  ASSIGN_OR_RETURN(out.layers, reader.integer("num_hidden_layers", 1, kMaxLayers, 32));
  ASSIGN_OR_RETURN(sizes.heads, reader.integer("num_attention_heads", 1, kMaxHeads, 32));
  sizes.kv_heads = sizes.heads;
  if (sizes.dim % sizes.heads != 0) {
    return reader.error("num_attention_heads", str_cat(sizes.heads, " heads do not divide hidden_size ", sizes.dim));
  }
  if (sizes.head_dim() % 2 != 0) {
    return reader.error("num_attention_heads",
                        str_cat(sizes.heads, " heads are ", sizes.head_dim(), " wide: positions rotate pairs"));
  }
  ASSIGN_OR_RETURN(out.max_positions, reader.integer("max_position_embeddings", 1, ModelSpec::kMaxPositions, 2048));
  ASSIGN_OR_RETURN(const double epsilon, reader.number("rms_norm_eps", 0, 1, 1e-6));
  sizes.epsilon = static_cast<float>(epsilon);
  ASSIGN_OR_RETURN(sizes.activation, read_activation(reader, "hidden_act", "silu"));
  RETURN_IF_ERROR(read_cross(reader, out));
  ASSIGN_OR_RETURN(const bool is_tied, reader.boolean("tie_word_embeddings", false));
  if (!is_tied) return out;
  return with_param(unimplemented(reader.file(), ": tie_word_embeddings: true is not supported, only false"),
                    "tie_word_embeddings");
}

StatusOr<Decoder> load_cogagent_decoder(const CogAgentDecoderConfig& config, const std::string& prefix,
                                        WeightMap& weights, const ModelLoadOptions& options) {
  return CogAgentDecoderLoader(config, prefix, weights, options).load();
}

}  // namespace transept
