// Sizes of a BART-like model, from config.json. A value.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/status.h"
#include "core/model_config.h"
#include "models/bart_like_traits.h"
#include "ops/activation_kind.h"

namespace transept {

struct BartLikeConfig {
  struct Side {
    int64_t vocab_size = 0;
    int64_t layers = 0, heads = 0, ffn_dim = 0;
    int64_t max_positions = 0;
  };
  int64_t d_model = 0;
  int64_t cross_width = 0;  // of the rows that cross-attention reads; 0: d_model
  Side encoder, decoder;
  Activation activation = Activation::kGelu;
  bool scale_embedding = false;
  bool tie_word_embeddings = true;
  // One token table for both sides. False: each side has a table for its own vocabulary, or the encoder has none
  // (media).
  bool share_embeddings = true;

  float embedding_scale() const { return scale_embedding ? std::sqrt(static_cast<float>(d_model)) : 1.0f; }
  int64_t head_dim(const Side& side) const { return d_model / side.heads; }
};

// Reads and checks the sizes; warns of switches that contradict `traits`. Errors: kInvalidArgument, naming file and
// field: a size that is missing or out of range, heads that do not divide d_model, an unsupported activation.
StatusOr<BartLikeConfig> read_bart_like_config(const BartLikeTraits& traits, const ModelConfig& config);

// The same of the object of a text model in the config of a composite one (Florence-2's text_config).
StatusOr<BartLikeConfig> read_bart_like_text_config(const BartLikeTraits& traits, const ConfigReader& reader);

// The same of the object of a decoder in the config of a composite model, which has no encoder of this kind: `encoder`
// stays empty, nothing is shared, and the vocabulary is the object's own.
StatusOr<BartLikeConfig> read_bart_like_decoder_config(const BartLikeTraits& traits, const ConfigReader& reader);

}  // namespace transept
