// The table of capabilities (core/capabilities.h) for the known families and attention backends. Loading checks against
// it what flags and the model's files ask for, and docs/features.md is printed from it. Pure functions: thread-safe.
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

// Returns why this family on this backend lacks the feature; "": it has it.
std::string refusal_of(Feature feature, const FamilyTraits& family, const AttentionBackend& backend);

// A requested feature, and where it is requested: "--quantization int8", "m/config.json: sliding_window: 512".
struct AskedFeature {
  Feature feature;
  std::string where;
};

// Returns what flags and the folder's files ask for by name. Errors: an unknown value of a flag (lists the values that
// this version has).
StatusOr<std::vector<AskedFeature>> asked_features(const EngineConfig& config, const ModelConfig& model);

// The dtype of a name: vLLM's half and float are float16 and float32; any other name is itself.
std::string known_dtype(std::string name);

// Returns what --kv-cache-dtype means. Errors: an unknown value.
StatusOr<DType> kv_dtype_of(const EngineConfig& config);

// Returns kUnimplemented if flags or the folder ask for a feature that is refused; names the feature and the reason. An
// unknown family passes: loading refuses it by name. Other errors: an unknown backend, or value of a flag.
Status check_features(const EngineConfig& config, const ModelConfig& model);

// The text of docs/features.md.
std::string features_markdown();
// The same for a terminal.
std::string features_text();

}  // namespace transept
