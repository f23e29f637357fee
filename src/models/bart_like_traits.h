// What a BART-like family (bart_like.h) chooses. Values.
#pragma once

#include <cstdint>
#include <string_view>

#include "layers/sinusoidal.h"
#include "models/model.h"

namespace transept {

// Where a layer's norms stand: before each sublayer (and one more behind the last layer), or behind each residual sum.
enum class NormPlace : uint8_t { kAfter, kBefore };

// Whether a norm stands behind the token embedding, and on which side of adding the positions.
enum class EmbeddingNorm : uint8_t { kNone, kAfterPositions, kBeforePositions };

struct PositionTraits {
  enum class Kind : uint8_t {
    kLearned,   // a table in the checkpoint
    kStored,    // sinusoidal; the checkpoint may hold the table, else it is computed
    kComputed,  // sinusoidal; a table in the checkpoint is known and not read, as in the reference
  };
  Kind kind = Kind::kLearned;
  Sinusoid sinusoid = Sinusoid::kByDim;
  int32_t offset = 0;  // the row of position 0: fairseq keeps the rows before for padding
};

struct BartLikeTraits {
  std::string_view family;  // model_type
  NormPlace norm_place = NormPlace::kAfter;
  EmbeddingNorm encoder_embedding_norm = EmbeddingNorm::kNone;
  EmbeddingNorm decoder_embedding_norm = EmbeddingNorm::kNone;
  PositionTraits positions;
  DefaultPrompt default_prompt = DefaultPrompt::kStart;
  // What holds where config.json does not say.
  bool scale_embedding = false;
  std::string_view activation = "gelu";
  // What the family calls otherwise than BART, or lacks.
  std::string_view encoder_positions_key = "max_position_embeddings";
  std::string_view decoder_positions_key = "max_position_embeddings";
  std::string_view output_layer = "lm_head.weight";
  bool k_has_bias = true;
  bool encodes_media = false;  // an EncoderInput of the family's own; no token table on the encoder's side
};

}  // namespace transept
