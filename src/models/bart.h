// BART (Lewis et al. 2019): post-norm encoder and decoder, learned positions with an offset of 2, an embedding norm.
// Source: transformers/models/bart/modeling_bart.py.
#pragma once

#include <memory>

#include "models/model.h"

namespace transept {

StatusOr<std::unique_ptr<Model>> load_bart(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                           const ModelLoadOptions& options);

}  // namespace transept
