// BART (Lewis et al. 2019): post-norm encoder and decoder, learned positions, an embedding norm. Generation begins with
// the end token and bos. Checkpoints: facebook/bart-base, bart-large-cnn, sshleifer/distilbart-*.
// Source: transformers, models/bart/modeling_bart.py.
#include "models/bart_like.h"
#include "models/families.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_bart(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                           const ModelLoadOptions& options) {
  constexpr BartLikeTraits kTraits{
      .family = "bart",
      .norm_place = NormPlace::kAfter,
      .encoder_embedding_norm = EmbeddingNorm::kAfterPositions,
      .decoder_embedding_norm = EmbeddingNorm::kAfterPositions,
      .positions = {.kind = PositionTraits::Kind::kLearned, .offset = 2},
  };
  return load_bart_like(kTraits, config, std::move(weights), options);
}

}  // namespace transept
