// Which families there are: one line each (registry.cc).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace transept {

// Loads the model of config.model_type / config.architectures. The model keeps `weights`. Warns, by name, of every
// tensor that nothing reads. Errors: an unsupported architecture (lists the supported ones), a config field out of
// range, a missing or misshapen weight.
StatusOr<std::unique_ptr<Model>> load_model(const ModelConfig& config, const std::shared_ptr<WeightMap>& weights,
                                            const ModelLoadOptions& options);

// A family as the table of capabilities sees it.
struct FamilyTraits {
  std::string_view model_type;
  std::span<const std::string_view> modalities;  // ModelSpec::modalities: keys of multi_modal_data that it takes
};

// Every family, in the order of the registry.
std::vector<FamilyTraits> family_traits();

// The family that load_model takes for this config; none: it refuses it.
std::optional<FamilyTraits> family_of(const ModelConfig& config);

}  // namespace transept
