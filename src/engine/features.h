// The table of capabilities (core/capabilities.h) for the families and attention backends that there are: what loading
// checks what flags and the model's files ask for against, and what docs/features.md is printed from. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attention/backend.h"
#include "base/status.h"
#include "core/capabilities.h"
#include "core/model_config.h"
#include "models/registry.h"

namespace transept {

struct EngineConfig;

// Why this family on this backend has not the feature; "": it has.
std::string refusal_of(Feature feature, const FamilyTraits& family, const AttentionBackend& backend);

// A feature that is asked for, and where: "--quantization int8", "m/config.json: sliding_window: 512".
struct AskedFeature {
  Feature feature;
  std::string where;
};

// What flags and the folder's files ask for by name. Errors: a flag's value that nothing knows (lists those that this
// version has).
StatusOr<std::vector<AskedFeature>> asked_features(const EngineConfig& config, const ModelConfig& model);

// What --kv-cache-dtype means. Errors: a value that nothing knows.
StatusOr<DType> kv_dtype_of(const EngineConfig& config);

// kUnimplemented: a feature that flags or the folder ask for, refused by name with the reason. A family that nothing
// here reads passes: loading refuses it by its own name. Errors besides: an unknown backend, or value of a flag.
Status check_features(const EngineConfig& config, const ModelConfig& model);

// docs/features.md.
std::string features_markdown();
// The same for a terminal.
std::string features_text();

}  // namespace transept
