// `transept pack`: a model's folder written anew with its matrices packed, so that it loads by being mapped.
#pragma once

#include <string>

#include "base/function_ref.h"
#include "base/status.h"
#include "engine/config.h"

namespace transept {

struct PackedModel {
  uint64_t num_bytes = 0;  // of the weights' file
  std::string storage;     // "int8 58.1 MiB in 97 matrices"
  size_t num_copied = 0;   // other files: configuration, tokenizer, licence
};

// Loads config.model as the flags say and writes the folder `out`, which must not exist. What is written stands beside
// it under another name until it is whole, and is removed where something fails. goes_on: asked now and then; false
// ends it. Errors: whatever loading gives; the folder is packed already; `out` exists or cannot be written.
StatusOr<PackedModel> pack_model(const EngineConfig& config, const std::string& out, FunctionRef<bool()> goes_on);

}  // namespace transept
