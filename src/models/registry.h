// Which families there are: one line each (registry.cc).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/model.h"

namespace transept {

// Loads the model of config.model_type / config.architectures. The model keeps `weights`. Warns, by name, of every
// tensor that nothing reads. Errors: an unsupported architecture (lists the supported ones), a config field out of
// range, a missing or misshapen weight.
StatusOr<std::unique_ptr<Model>> load_model(const ModelConfig& config, std::shared_ptr<WeightMap> weights,
                                            const ModelLoadOptions& options);

// Supported model_type values.
std::vector<std::string> supported_families();

}  // namespace transept
