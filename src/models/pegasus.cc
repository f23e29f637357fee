// Pegasus (Zhang et al. 2019): pre-norm, sinusoidal positions, no embedding norm. Checkpoints: google/pegasus-xsum,
// pegasus-large, pegasus-cnn_dailymail. Source: transformers, models/pegasus/modeling_pegasus.py.
#include "models/bart_like.h"
#include "models/families.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_pegasus(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                              const ModelLoadOptions& options) {
  constexpr BartLikeTraits kTraits{
      .family = "pegasus",
      .norm_place = NormPlace::kBefore,
      .positions = {.kind = PositionTraits::Kind::kStored, .sinusoid = Sinusoid::kByDim},
  };
  return load_bart_like(kTraits, config, std::move(weights), options);
}

}  // namespace transept
