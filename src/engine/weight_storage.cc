#include "engine/weight_storage.h"

namespace transept {

std::optional<DType> weight_storage(const EngineConfig& config) {
  if (config.quantization == "int8" || config.quantization == "auto") return DType::kInt8;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    if (config.dtype == dtype_name(dtype)) return dtype;
  }
  return std::nullopt;
}

bool storage_is_asked(const EngineConfig& config) {
  const bool as_it_is = config.quantization == "auto" || (config.quantization == "none" && !config.quantization_given);
  return !as_it_is || config.dtype != "auto";
}

void set_storage_flags(std::optional<DType> storage, EngineConfig& config) {
  config.quantization = storage == DType::kInt8 ? "int8" : "none";
  if (storage.has_value() && storage != DType::kInt8) config.dtype = dtype_name(*storage);
}

std::string storage_text(const std::vector<PackedLayer>& layers) {
  std::vector<std::string> parts;
  size_t mapped = 0;
  for (const DType dtype : {DType::kInt8, DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    size_t bytes = 0, count = 0;
    for (const PackedLayer& layer : layers) {
      if (layer.format.storage != dtype) continue;
      bytes += layer.bytes;
      mapped += layer.is_mapped ? layer.bytes : 0;
      ++count;
    }
    if (count == 0) continue;
    parts.push_back(
        str_cat(dtype_name(dtype), " ", format_bytes(bytes), " in ", count, count == 1 ? " matrix" : " matrices"));
  }
  return join(parts, ", ") + (mapped > 0 ? str_cat("; ", format_bytes(mapped), " of them mapped") : std::string());
}

}  // namespace transept
