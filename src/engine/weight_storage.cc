#include "engine/weight_storage.h"

#include "engine/features.h"

namespace transept {
namespace {

bool widens_float16_fast(Isa isa) { return isa != Isa::kGeneric; }

std::optional<WeightFormat> named_storage(const EngineConfig& config) {
  if (config.quantization == "int8") return kInt8Format;
  for (const WeightFormat& format : {kFloat32Format, kBFloat16Format, kFloat16Format}) {
    if (config.dtype == weight_format_name(format)) return format;
  }
  return std::nullopt;
}

std::string auto_report(const EngineConfig& config, const StorageTypes& types, Isa isa, const StoredWeights& stored) {
  const auto weights = [&]() -> std::string {
    if (config.dtype != "auto") return str_cat("weights in ", config.dtype, ", as --dtype says");
    if (stored.is_packed) return "weights as the packed folder has them";
    if (types.weights.has_value()) {
      return str_cat("weights in ", weight_format_name(*types.weights),
                     ", the fastest type that passes every gate of quality");
    }
    if (stored.format != kFloat32Format) {
      return str_cat("weights in the checkpoint's own ", weight_format_name(stored.format));
    }
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
    if (is_free && stored.format == kFloat32Format) types.weights = kFloat16Format;
    if (config.kv_cache_dtype == "auto") types.kv = DType::kInt8, types.narrow_kv = DType::kFloat16;
  }
  types.report = auto_report(config, types, isa, stored);
  return types;
}

bool storage_is_asked(const EngineConfig& config) {
  const bool as_it_is = config.quantization == "auto" || (config.quantization == "none" && !config.quantization_given);
  return !as_it_is || config.dtype != "auto";
}

void set_storage_flags(const std::optional<WeightFormat>& storage, EngineConfig& config) {
  config.quantization = storage == kInt8Format ? "int8" : "none";
  if (storage.has_value() && storage != kInt8Format) config.dtype = weight_format_name(*storage);
}

std::string storage_text(const std::vector<PackedLayer>& layers) {
  std::vector<std::string> parts;
  size_t mapped = 0;
  for (const WeightFormat& format : {kInt8Format, kFloat16Format, kBFloat16Format, kFloat32Format}) {
    size_t bytes = 0, count = 0;
    for (const PackedLayer& layer : layers) {
      if (layer.format.weights != format) continue;
      bytes += layer.bytes;
      mapped += layer.is_mapped ? layer.bytes : 0;
      ++count;
    }
    if (count == 0) continue;
    parts.push_back(str_cat(weight_format_name(format), " ", format_bytes(bytes), " in ", count,
                            count == 1 ? " matrix" : " matrices"));
  }
  return join(parts, ", ") + (mapped > 0 ? str_cat("; ", format_bytes(mapped), " of them mapped") : std::string());
}

}  // namespace transept
