// The supported model families (listed in families.h), and the loading of a model. Thread-safe, but a WeightMap belongs
// to one loader at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace transept {

// Loads options.part of the model that config.architectures names, or, if that is empty, config.model_type. The model
// keeps `weights`. Warns, by name, of every tensor that no layer reads, unless its name says that it is the part's that
// was not asked for. Errors: kUnimplemented: an unsupported architecture (lists the
// supported families), or heads that the attention backend does not support; kNotFound: a missing weight, by name;
// kInvalidArgument, naming file and field, or tensor: a config field that is missing or out of range, a misshapen
// weight.
StatusOr<std::unique_ptr<Model>> load_model(const ModelConfig& config, const std::shared_ptr<WeightMap>& weights,
                                            const ModelLoadOptions& options);

// Returns kUnimplemented if load_model() would refuse the architecture; lists the supported families.
Status check_family(const ModelConfig& config);

// The properties of a family that the table of capabilities needs.
struct FamilyTraits {
  std::string_view model_type;
  std::span<const std::string_view> modalities;  // as ModelSpec::modalities
  bool crosses = true;                           // whether items have a cross table (ModelSpec::consumers)
};

// Returns every family, in the order of families.h.
std::vector<FamilyTraits> family_traits();

// Returns the family that load_model() uses for this config. Unset: the architecture is not supported.
std::optional<FamilyTraits> family_of(const ModelConfig& config);

}  // namespace transept
