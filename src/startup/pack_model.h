// `transept pack`: writes a model's folder anew with its matrices packed, so that it loads by being mapped.
#pragma once

#include <string>

#include "base/function_ref.h"
#include "base/status.h"
#include "startup/load_engine.h"

namespace transept {

struct PackedModel {
  uint64_t num_bytes = 0;  // of the weights' files
  int32_t num_ranks = 1;   // each has a file
  std::string storage;     // "int8 58.1 MiB in 97 matrices"; of ranks what the first one has
  size_t num_copied = 0;   // other files: configuration, tokenizer, licence
};

// Loads config.model as the flags say and writes the folder `out`, which must not exist: model.safetensors, or with
// --tensor-parallel-size a file of its own for each rank, one after the other. The folder is written beside
// `out` under another name until it is complete, and removed on failure. goes_on: called now and then; false cancels.
// Errors: any error of loading; the folder is packed already; `out` exists or cannot be written.
StatusOr<PackedModel> pack_model(const EngineConfig& config, const std::string& out, FunctionRef<bool()> goes_on);

}  // namespace transept
