// mBART and mBART-50 (Liu et al. 2020, Tang et al. 2020): BART with norms before each sublayer and one more behind the
// last layer; the decoder begins with the target language, or with the end token and the language. Checkpoints:
// facebook/mbart-large-cc25, mbart-large-en-ro, mbart-large-50-many-to-many-mmt.
// Source: transformers, models/mbart/modeling_mbart.py.
#include "models/bart_like.h"
#include "models/families.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_mbart(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                            const ModelLoadOptions& options) {
  constexpr BartLikeTraits kTraits{
      .family = "mbart",
      .norm_place = NormPlace::kBefore,
      .encoder_embedding_norm = EmbeddingNorm::kAfterPositions,
      .decoder_embedding_norm = EmbeddingNorm::kAfterPositions,
      .positions = {.kind = PositionTraits::Kind::kLearned, .offset = 2},
  };
  return load_bart_like(kTraits, config, std::move(weights), options);
}

}  // namespace transept
