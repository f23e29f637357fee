// M2M100 (Fan et al. 2020) and NLLB (NLLB team 2022): pre-norm, fairseq's sinusoidal positions, which checkpoints do
// not hold; generation begins with the end token and the target language. Checkpoints: facebook/m2m100_418M,
// nllb-200-distilled-600M. Source: transformers, models/m2m_100/modeling_m2m_100.py.
#include "models/bart_like.h"
#include "models/families.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_m2m_100(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                              const ModelLoadOptions& options) {
  constexpr BartLikeTraits kTraits{
      .family = "m2m_100",
      .norm_place = NormPlace::kBefore,
      .positions = {.kind = PositionTraits::Kind::kComputed, .sinusoid = Sinusoid::kByHalf, .offset = 2},
      .scale_embedding = true,
      .activation = "relu",
  };
  // The reference's positions begin behind the padding's row: offset is right for padding of 1 alone.
  if (config.pad_token_id.value_or(1) != 1) {
    const ConfigReader reader(config.raw, config.path + "/config.json");
    return reader.error("pad_token_id", str_cat(*config.pad_token_id,
                                                " is not supported: positions begin behind it, "
                                                "and m2m_100 models are computed as if it were 1"));
  }
  return load_bart_like(kTraits, config, std::move(weights), options);
}

}  // namespace transept
