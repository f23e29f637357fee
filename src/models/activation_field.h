// Activations by the names that config.json has for them.
#pragma once

#include <string_view>

#include "base/status.h"
#include "core/model_config.h"
#include "ops/activation_kind.h"

namespace transept {

// Errors name the file and `key`, and say which names there are.
StatusOr<Activation> activation_by_name(const ConfigReader& reader, std::string_view key, std::string_view name);

// The field `key`; `fallback` where the file does not say.
StatusOr<Activation> read_activation(const ConfigReader& reader, std::string_view key, std::string_view fallback);

}  // namespace transept
