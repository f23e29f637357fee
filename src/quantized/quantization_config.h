// What a model's folder says of how its weights are quantised: quantization_config of config.json, and beside it or in
// its place quantize_config.json (GPTQ), quant_config.json (AWQ) or quanto_qmap.json (quanto). Values; pure functions:
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "core/capabilities.h"
#include "core/model_config.h"
#include "quantized/compressed_config.h"

namespace transept {

struct GptqConfig {
  int32_t bits = 4;
  int64_t group = 0;         // 0: all inputs
  bool in_order = true;      // every input's group is known without g_idx (desc_act is false)
  bool zeros_less_1 = true;  // version 1 of the files

  friend bool operator==(const GptqConfig&, const GptqConfig&) = default;
};

struct AwqConfig {
  int64_t group = 0;  // 0: all inputs

  friend bool operator==(const AwqConfig&, const AwqConfig&) = default;
};

struct Float8Config {
  int64_t block_outputs = 0, block_inputs = 0;  // 0: by tensor or channel, as the scales' shape says

  friend bool operator==(const Float8Config&, const Float8Config&) = default;
};

struct BitsandbytesConfig {
  friend bool operator==(const BitsandbytesConfig&, const BitsandbytesConfig&) = default;
};

struct QuantoConfig {
  friend bool operator==(const QuantoConfig&, const QuantoConfig&) = default;
};

struct QuantizationConfig {
  // A format that the folder has, by its row in the table of capabilities, and where the folder says so.
  struct Format {
    Feature feature = Feature::kQuantization;
    std::string where;
  };

  std::string file;  // "DIR/config.json: quantization_config"
  std::string name;  // for reports: "gptq, 4 bits in groups of 128"
  std::vector<Format> formats;
  // Unset where a format is refused, as the rest of the config was not read then.
  std::variant<std::monostate, CompressedConfig, BitsandbytesConfig, GptqConfig, AwqConfig, Float8Config, QuantoConfig>
      settings;
  // The field by which the format itself rounds the inputs of products; "": it does not.
  std::string rounds_inputs;
  std::string unread_inputs;   // such a field whose rounding is not done, and what it asks for; "": none
  bool has_kv_scheme = false;  // it says how keys and values are quantised, too
};

// Returns what the folder says. Unset: nothing. Errors name file and field: a file that cannot be read; an unknown
// method; a value of the wrong type or range; two files that differ.
StatusOr<std::optional<QuantizationConfig>> read_quantization(const ModelConfig& model);

// The same of a single object. `file` is the place of the object, for messages; unknown keys are not read.
StatusOr<QuantizationConfig> parse_quantization(const Json& object, const std::string& file);

}  // namespace transept
