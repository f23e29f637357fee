// The arithmetic of the BART-like families (bart_like.h) and of others that differ in names and inputs: loaded layers
// in, a Model out. Which norms stand where is settled by which of them are there. Source: transformers,
// models/{bart,mbart,marian,pegasus,m2m_100,blenderbot, blenderbot_small}/modeling_*.py. Immutable, so thread-safe as
// far as Model is.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "layers/attention.h"
#include "layers/embedding.h"
#include "layers/feed_forward.h"
#include "layers/layer_norm.h"
#include "models/bart_like_config.h"
#include "models/bart_like_traits.h"
#include "models/encoder_input.h"

namespace transept {

// x + f(x) with a norm: y = norm(x + f(x)), or y = x + f(norm(x)).
struct Residual {
  LayerNorm norm;
  NormPlace place;

  // f(x, residual, y): y = f(x) + residual; y may be the residual. x: [rows, dim], replaced by the result.
  template <typename F>
  void run(Context& context, const TensorView& x, const F& f) const {
    if (place == NormPlace::kAfter) {
      f(x, x, x);
      norm.forward(context, x, x);
      return;
    }
    Arena::Scope scope(context.arena);
    const TensorView normed = context.arena.tensor(DType::kFloat32, {x.dim(0), x.dim(1)});
    norm.forward(context, x, normed);
    f(normed, x, x);
  }
};

struct BartLikeEncoderLayer {
  SelfAttention attention;
  Residual attention_sum;
  FeedForward feed_forward;
  Residual feed_forward_sum;
};

struct BartLikeDecoderLayer {
  SelfAttention attention;
  Residual attention_sum;
  CrossAttention cross;
  Residual cross_sum;
  FeedForward feed_forward;
  Residual feed_forward_sum;
};

// Tokens, positions and the norm behind them: one for each side that reads tokens.
struct BartLikeInput {
  Embedding tokens;
  std::optional<Embedding> positions;  // none: the attention turns its queries and keys
  int32_t position_offset = 0;
  float scale = 1;
  EmbeddingNorm norm_place = EmbeddingNorm::kNone;
  std::optional<LayerNorm> norm;  // unless norm_place is kNone

  void forward(Context& context, View<int32_t> ids, View<int32_t> position_ids, const TensorView& x) const;
};

struct BartLikeParts {
  ModelSpec spec;
  std::unique_ptr<EncoderInput> encoder_input;
  BartLikeInput decoder_input;
  std::vector<BartLikeEncoderLayer> encoder_layers;
  std::vector<BartLikeDecoderLayer> decoder_layers;
  std::optional<LayerNorm> encoder_norm, decoder_norm;  // behind the last layer
  std::vector<float> encoder_rope, decoder_rope;        // frequencies (ops/rope.h); empty: nothing is turned
  LmHead lm_head;
};

// The model keeps `weights`, which the embeddings read; `attention` outlives it.
std::unique_ptr<Model> make_bart_like_model(BartLikeParts parts, std::shared_ptr<WeightMap> weights,
                                            const AttentionBackend& attention);

}  // namespace transept
