// Blenderbot (Roller et al. 2020): pre-norm, learned positions, no embedding norm. Checkpoints:
// facebook/blenderbot-400M-distill, blenderbot-3B. Source: transformers, models/blenderbot/modeling_blenderbot.py.
#include "models/bart_like.h"
#include "models/families.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_blenderbot(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                                 const ModelLoadOptions& options) {
  constexpr BartLikeTraits kTraits{
      .family = "blenderbot",
      .norm_place = NormPlace::kBefore,
      .positions = {.kind = PositionTraits::Kind::kLearned},
  };
  return load_bart_like(kTraits, config, std::move(weights), options);
}

}  // namespace transept
