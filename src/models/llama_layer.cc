#include "models/llama_layer.h"

#include <cmath>

namespace transept {

StatusOr<Residual> load_llama_residual(const LlamaSizes& sizes, const std::string& prefix, WeightMap& weights) {
  ASSIGN_OR_RETURN(Norm norm,
                   Norm::load(weights, prefix, sizes.dim, {.kind = NormKind::kRms, .epsilon = sizes.epsilon}));
  return Residual{std::move(norm), NormPlace::kBefore};
}

AttentionOptions llama_attention_options(const LlamaSizes& sizes, const std::string& prefix) {
  AttentionOptions options;
  options.prefix = prefix;
  options.out = "o_proj";
  options.dim = sizes.dim;
  options.num_heads = sizes.heads;
  options.num_kv_heads = sizes.kv_heads;
  options.scale = 1.0f / std::sqrt(static_cast<float>(sizes.head_dim()));
  options.qkv_has_bias = sizes.qkv_has_bias;
  options.out_has_bias = false;
  return options;
}

StatusOr<Sublayer<SelfAttention>> load_llama_attention(const LlamaSizes& sizes, const std::string& prefix,
                                                       WeightMap& weights, const PackOptions& packing) {
  weights.ignore(prefix + "self_attn.rotary_emb.inv_freq");  // a buffer that older files hold
  ASSIGN_OR_RETURN(Residual sum, load_llama_residual(sizes, prefix + "input_layernorm", weights));
  ASSIGN_OR_RETURN(SelfAttention self,
                   SelfAttention::load(weights, llama_attention_options(sizes, prefix + "self_attn"), packing));
  return Sublayer<SelfAttention>{std::move(self), std::move(sum)};
}

StatusOr<Sublayer<FeedForward>> load_llama_feed_forward(const LlamaSizes& sizes, const std::string& prefix,
                                                        WeightMap& weights, const PackOptions& packing) {
  ASSIGN_OR_RETURN(Residual sum, load_llama_residual(sizes, prefix + "post_attention_layernorm", weights));
  FeedForward::Options options{prefix + "mlp.up_proj", prefix + "mlp.down_proj", sizes.dim, sizes.hidden_dim,
                               sizes.activation};
  options.gate = prefix + "mlp.gate_proj";
  options.has_biases = false;
  ASSIGN_OR_RETURN(FeedForward ffn, FeedForward::load(weights, options, packing));
  return Sublayer<FeedForward>{std::move(ffn), std::move(sum)};
}

}  // namespace transept
