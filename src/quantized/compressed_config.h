// The quantization_config of compressed-tensors (llm-compressor): groups of modules with the form that their weights
// have. Source: compressed_tensors/quantization/{quant_config,quant_args}.py and utils/match.py, 0.9 to 0.20. Values;
// pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "quantized/name_pattern.h"
#include "tensor/input_quantization.h"

namespace transept {

enum class CompressedForm : uint8_t {
  kPacked,    // pack-quantized: codes side by side in words
  kIntegers,  // int-quantized, naive-quantized: a byte each
  kFloat8,    // float-quantized, naive-quantized: float8 e4m3
  kOther,     // one that is not read
};

struct CompressedGroup {
  std::string name;                  // "group_0"
  std::vector<NamePattern> targets;  // names and patterns of modules, and names of classes
  CompressedForm form = CompressedForm::kPacked;
  std::string form_name;  // as the file spells it
  int32_t bits = 8;
  int64_t group = 0;  // inputs that share a scale; 0: all of an output, or of the matrix
  // > 0: a scale for each block of outputs and inputs (kFloat8).
  int64_t block_outputs = 0, block_inputs = 0;
  bool is_symmetric = true;
  bool rounds_inputs = false;  // input_activations or output_activations
  // What they are rounded to, as far as the config says it, and whether the tensors L.input_scale and
  // L.input_zero_point say the rest.
  InputQuantization inputs = {};
  bool has_input_scale = false;
  std::string unread_inputs;  // the field of a rounding that is not done, and why; "": none
};

struct CompressedConfig {
  std::string file;  // "DIR/config.json: quantization_config", for messages
  std::vector<CompressedGroup> groups;
  std::vector<NamePattern> ignore;
  std::string other;  // the field of what is not read, beside kOther: "sparsity_config"; "": none

  // The group that `module` belongs to, by the order of the reference: exact names, then patterns, then classes. Null:
  // none.
  const CompressedGroup* group_of(std::string_view module) const;
  bool ignores(std::string_view module) const;
};

// Returns the config. Groups whose form is not read have kOther. Errors name the field below `file`: a value of the
// wrong type or range; a pattern that NamePattern refuses; too many of them.
StatusOr<CompressedConfig> parse_compressed_config(const Json& object, const std::string& file);

}  // namespace transept
