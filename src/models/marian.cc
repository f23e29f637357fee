// Marian (Junczys-Dowmunt et al. 2018): post-norm, sinusoidal positions, no embedding norm, a bias of the output layer.
// The two sides share one vocabulary or have one each (share_encoder_decoder_embeddings). Checkpoints:
// Helsinki-NLP/opus-mt-*. Source: transformers, models/marian/modeling_marian.py.
#include "models/bart_like.h"
#include "models/families.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_marian(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                             const ModelLoadOptions& options) {
  constexpr BartLikeTraits kTraits{
      .family = "marian",
      .norm_place = NormPlace::kAfter,
      .positions = {.kind = PositionTraits::Kind::kStored, .sinusoid = Sinusoid::kByDim},
  };
  return load_bart_like(kTraits, config, std::move(weights), options);
}

}  // namespace transept
