// The choices of a BART-like family (bart_like.h). Values.
#pragma once

#include <cstdint>
#include <string_view>

#include "layers/residual.h"
#include "layers/sinusoidal.h"
#include "models/model.h"
#include "models/token_input.h"

namespace transept {

struct PositionTraits {
  enum class Kind : uint8_t {
    kLearned,   // a table in the checkpoint
    kStored,    // sinusoidal; read from the checkpoint if it has the table, else computed
    kComputed,  // sinusoidal; always computed: a table in the checkpoint is ignored, as in the reference
  };
  Kind kind = Kind::kLearned;
  Sinusoid sinusoid = Sinusoid::kByDim;
  int32_t offset = 0;  // the table's row of position 0; fairseq reserves the rows before it for padding
};

struct BartLikeTraits {
  std::string_view family;                   // model_type
  NormPlace norm_place = NormPlace::kAfter;  // kBefore: and one more behind the last layer
  EmbeddingNorm encoder_embedding_norm = EmbeddingNorm::kNone;
  EmbeddingNorm decoder_embedding_norm = EmbeddingNorm::kNone;
  PositionTraits positions;
  // Defaults of config.json.
  bool scale_embedding = false;
  std::string_view activation = "gelu";
  // Names that differ from BART's, and parts that the family lacks.
  std::string_view encoder_positions_key = "max_position_embeddings";
  std::string_view decoder_positions_key = "max_position_embeddings";
  std::string_view output_layer = "lm_head.weight";
  std::string_view output_bias = "final_logits_bias";
  bool k_has_bias = true;
  bool encodes_media = false;  // the family has its own EncoderInput, and the encoder no token table
};

}  // namespace transept
