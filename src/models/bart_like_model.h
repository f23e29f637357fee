// The arithmetic of the BART-like families (bart_like.h), and of Whisper and Moonshine, whose inputs and names differ:
// makes a Model of loaded layers. Source: transformers, modeling_*.py of
// models/{bart,mbart,marian,pegasus,m2m_100,blenderbot,blenderbot_small,plbart,whisper,moonshine}. Immutable, and
// thread-safe as Model is.
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

// A residual sum with a norm: kAfter: norm(x + f(x)); kBefore: x + f(norm(x)).
struct Residual {
  LayerNorm norm;
  NormPlace place;

  // Replaces x, [rows, dim], by the result. f(in, residual, out) must write out = sublayer(in) + residual; `out` may be
  // `residual`, and all three may be x.
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

// The token embedding, positions and norm of a side that reads tokens.
struct BartLikeInput {
  Embedding tokens;
  std::optional<Embedding> positions;  // unset: rotary positions (BartLikeParts::decoder_rope)
  int32_t position_offset = 0;
  float scale = 1;
  EmbeddingNorm norm_place = EmbeddingNorm::kNone;
  std::optional<LayerNorm> norm;  // set unless norm_place is kNone

  // x: [ids.size(), d_model] float32, overwritten.
  void forward(Context& context, View<int32_t> ids, View<int32_t> position_ids, const TensorView& x) const;
};

struct BartLikeParts {
  ModelSpec spec;
  std::unique_ptr<EncoderInput> encoder_input;
  BartLikeInput decoder_input;
  std::vector<BartLikeEncoderLayer> encoder_layers;
  std::vector<BartLikeDecoderLayer> decoder_layers;
  std::optional<LayerNorm> encoder_norm, decoder_norm;  // after the last layer; unset: none
  std::vector<float> encoder_rope, decoder_rope;        // frequencies (ops/rope.h); empty: no rotary positions
  LmHead lm_head;
};

// The model keeps `weights`, since the embeddings read them. It borrows `attention`.
std::unique_ptr<Model> make_bart_like_model(BartLikeParts parts, std::shared_ptr<WeightMap> weights,
                                            const AttentionBackend& attention);

}  // namespace transept
