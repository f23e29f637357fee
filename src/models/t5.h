// T5 (Raffel et al. 2020), T5 v1.1 and Flan, mT5, umT5, ByT5, MADLAD-400: pre-norm layers with RMS norms, without any
// bias, without positions but for a learned bias of the scores by distance, and without a scale of the scores.
// Source: transformers/models/{t5,mt5,umt5}/modeling_*.py, version 4 where version 5 differs.
#pragma once

#include <memory>

#include "models/model.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_t5(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                         const ModelLoadOptions& options);
StatusOr<std::unique_ptr<Model>> load_mt5(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                          const ModelLoadOptions& options);
StatusOr<std::unique_ptr<Model>> load_umt5(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                           const ModelLoadOptions& options);

}  // namespace transept
