// The names of methods of quantisation in config.json (quant_method), as vLLM's registry and transformers have them in
// 2026, and the row of the capability table that each belongs to. Constant data: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/capabilities.h"

namespace transept {

enum class QuantMethod : uint8_t {
  kRefused,
  kCompressedTensors,
  kBitsandbytes,
  kGptq,
  kAwq,
  kFloat8,
  kModelOpt,
  kQuanto,
};

struct NamedQuantMethod {
  std::string_view name;
  QuantMethod method = QuantMethod::kRefused;
  Feature feature = Feature::kQuantization;  // of kRefused: the row that says why
};

std::span<const NamedQuantMethod> quant_methods();
const NamedQuantMethod* find_quant_method(std::string_view name);  // null: unknown

}  // namespace transept
