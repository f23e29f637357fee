#include "engine/weight_storage.h"

#include "engine/features.h"

namespace transept {
namespace {

bool widens_float16_fast(Isa isa) { return isa != Isa::kGeneric; }

std::optional<DType> named_storage(const EngineConfig& config) {
  if (config.quantization == "int8") return DType::kInt8;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    if (config.dtype == dtype_name(dtype)) return dtype;
  }
  return std::nullopt;
}

std::string auto_report(const EngineConfig& config, const StorageTypes& types, Isa isa, const StoredWeights& stored) {
  const auto weights = [&]() -> std::string {
    if (config.dtype != "auto") return str_cat("weights in ", config.dtype, ", as --dtype says");
    if (stored.is_packed) return "weights as the packed folder has them";
    if (types.weights.has_value()) {
      return str_cat("weights in ", dtype_name(*types.weights), ", the fastest type that passes every gate of quality");
    }
    if (stored.dtype != DType::kFloat32) return str_cat("weights in the checkpoint's own ", dtype_name(stored.dtype));
    return str_cat("weights in the checkpoint's own float32: ", isa_name(isa), " kernels widen 16 bits slowly");
  };
  const auto kv = [&] {
    if (config.kv_cache_dtype != "auto") return std::string(", as --kv-cache-dtype says");
    if (!types.narrow_kv.has_value()) return std::string();
    return str_cat(" (", dtype_name(*types.narrow_kv), " if d_model is below ", kLeastInt8Width, ")");
  };
  return str_cat("quantization auto: ", weights(), "; KV cache in ", dtype_name(types.kv), kv(),
                 "; weights in int8 are for who asks for them by name");
}

}  // namespace

StatusOr<StorageTypes> storage_types(const EngineConfig& config, Isa isa, const StoredWeights& stored) {
  StorageTypes types;
  types.weights = named_storage(config);
  ASSIGN_OR_RETURN(types.kv, kv_dtype_of(config));
  if (config.quantization != "auto") return types;
  if (widens_float16_fast(isa)) {
    const bool is_free = config.dtype == "auto" && !stored.is_packed;
    if (is_free && stored.dtype == DType::kFloat32) types.weights = DType::kFloat16;
    if (config.kv_cache_dtype == "auto") types.kv = DType::kInt8, types.narrow_kv = DType::kFloat16;
  }
  types.report = auto_report(config, types, isa, stored);
  return types;
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
