// Blenderbot of 90M parameters (Roller et al. 2020): post-norm, learned positions, an embedding norm, to which the
// decoder adds its positions only afterwards. Checkpoints: facebook/blenderbot_small-90M. Source: transformers 4,
// models/blenderbot_small/modeling_blenderbot_small.py (transformers 5 leaves scale_embedding out of the decoder).
#include "models/bart_like.h"
#include "models/families.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_blenderbot_small(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                                       const ModelLoadOptions& options) {
  constexpr BartLikeTraits kTraits{
      .family = "blenderbot-small",
      .norm_place = NormPlace::kAfter,
      .encoder_embedding_norm = EmbeddingNorm::kAfterPositions,
      .decoder_embedding_norm = EmbeddingNorm::kBeforePositions,
      .positions = {.kind = PositionTraits::Kind::kLearned},
  };
  return load_bart_like(kTraits, config, std::move(weights), options);
}

}  // namespace transept
