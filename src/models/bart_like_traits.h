// The choices of a BART-like family (bart_like.h). Values.
#pragma once

#include <cstdint>
#include <string_view>

#include "layers/sinusoidal.h"
#include "models/model.h"

namespace transept {

// Where a layer has its norms: before each sublayer (and one more after the last layer), or after each residual sum.
enum class NormPlace : uint8_t { kAfter, kBefore };

// Whether the embedding has a norm, and whether it comes before or after adding the positions.
enum class EmbeddingNorm : uint8_t { kNone, kAfterPositions, kBeforePositions };

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
  std::string_view family;  // model_type
  NormPlace norm_place = NormPlace::kAfter;
  EmbeddingNorm encoder_embedding_norm = EmbeddingNorm::kNone;
  EmbeddingNorm decoder_embedding_norm = EmbeddingNorm::kNone;
  PositionTraits positions;
  DefaultPrompt default_prompt = DefaultPrompt::kStart;
  // Defaults of config.json.
  bool scale_embedding = false;
  std::string_view activation = "gelu";
  // Names that differ from BART's, and parts that the family lacks.
  std::string_view encoder_positions_key = "max_position_embeddings";
  std::string_view decoder_positions_key = "max_position_embeddings";
  std::string_view output_layer = "lm_head.weight";
  bool k_has_bias = true;
  bool encodes_media = false;  // the family has its own EncoderInput, and the encoder no token table
};

}  // namespace transept
