// Reads activations by their names in config.json. Thread-safe.
#pragma once

#include <string_view>

#include "base/status.h"
#include "core/model_config.h"
#include "ops/activation_kind.h"

namespace transept {

// Errors: kInvalidArgument, naming the file and `key`: an unknown name; the message lists the known ones.
StatusOr<Activation> activation_by_name(const ConfigReader& reader, std::string_view key, std::string_view name);

// Reads the field `key`; absent: `fallback`. Errors: as above; a field that is not a string.
StatusOr<Activation> read_activation(const ConfigReader& reader, std::string_view key, std::string_view fallback);

}  // namespace transept
