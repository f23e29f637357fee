// The parts of a layer of Llama (Touvron et al. 2023) and its relatives: RMS norms, grouped heads, a gated
// feed-forward. Names are theirs: self_attn.{q,k,v,o}_proj, mlp.{gate,up,down}_proj. Pure functions: thread-safe.
// Source: transformers, models/llama/modeling_llama.py.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "models/model.h"
#include "models/transformer_stack.h"

namespace transept {

struct LlamaSizes {
  int64_t dim = 0, hidden_dim = 0;
  int64_t heads = 0, kv_heads = 0;
  Activation activation = Activation::kSilu;
  float epsilon = 1e-5f;
  bool qkv_has_bias = false;

  int64_t head_dim() const { return dim / heads; }
};

// The sum around a sublayer that the norm `prefix` stands before.
StatusOr<Residual> load_llama_residual(const LlamaSizes& sizes, const std::string& prefix, WeightMap& weights);

// What the attentions of self_attn and cross_attn have in common. prefix: with the name of the attention.
AttentionOptions llama_attention_options(const LlamaSizes& sizes, const std::string& prefix);

// prefix: of the layer, with its dot. Errors: a missing or misshapen tensor, by name.
StatusOr<Sublayer<SelfAttention>> load_llama_attention(const LlamaSizes& sizes, const std::string& prefix,
                                                       WeightMap& weights, const PackOptions& packing);
StatusOr<Sublayer<FeedForward>> load_llama_feed_forward(const LlamaSizes& sizes, const std::string& prefix,
                                                        WeightMap& weights, const PackOptions& packing);

}  // namespace transept
