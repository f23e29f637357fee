// Whether a model's folder would run, without loading it: for models that are listed or about to be fetched.
// Thread-safe.
#pragma once

#include <string>

#include "base/status.h"

namespace transept {

// Reads config.json. Errors: those of ModelConfig::load, explained (recognise_model.h); an architecture or a feature
// that is refused.
Status check_model_config(const std::string& model_dir);
// Opens the weights, too, and reads their headers. Errors: also those of WeightMap::open; weights of an adapter.
Status check_model_folder(const std::string& model_dir);

}  // namespace transept
