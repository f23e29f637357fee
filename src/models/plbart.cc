// PLBart (Ahmad et al. 2021), for programs: BART, but with a scaled embedding, and the decoder begins with the target
// language. Checkpoints: uclanlp/plbart-base, plbart-java-cs. Source: transformers, models/plbart/modeling_plbart.py.
#include "models/bart_like.h"
#include "models/families.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_plbart(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                             const ModelLoadOptions& options) {
  constexpr BartLikeTraits kTraits{
      .family = "plbart",
      .norm_place = NormPlace::kAfter,
      .encoder_embedding_norm = EmbeddingNorm::kAfterPositions,
      .decoder_embedding_norm = EmbeddingNorm::kAfterPositions,
      .positions = {.kind = PositionTraits::Kind::kLearned, .offset = 2},
      .scale_embedding = true,
  };
  return load_bart_like(kTraits, config, std::move(weights), options);
}

}  // namespace transept
