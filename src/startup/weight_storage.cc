#include "startup/weight_storage.h"

#include <algorithm>
#include <cmath>

#include "startup/features.h"

namespace transept {
namespace {

bool widens_float16_fast(Isa isa) { return isa != Isa::kGeneric; }

std::optional<WeightFormat> named_storage(const EngineConfig& config) {
  if (config.quantization == "int8") return kInt8Format;
  if (config.quantization == "int4") return kInt4Format;
  for (const WeightFormat& format : {kFloat32Format, kBFloat16Format, kFloat16Format}) {
    if (config.dtype == weight_format_name(format)) return format;
  }
  return std::nullopt;
}

// Whether a flag asks for a storage type.
bool storage_is_asked(const EngineConfig& config) {
  const bool as_it_is = config.quantization == "auto" || (config.quantization == "none" && !config.quantization_given);
  return !as_it_is || config.dtype != "auto";
}

constexpr double kWorthSaying = 0.8;  // of the bytes

bool is_narrow(int64_t model_width) { return model_width < kLeastInt8Width; }

std::string auto_report(const EngineConfig& config, const StorageTypes& types, Isa isa, const StoredWeights& stored,
                        int64_t model_width) {
  const auto weights = [&]() -> std::string {
    if (config.dtype != "auto") return str_cat("weights in ", config.dtype, ", as --dtype says");
    if (stored.is_packed) return "weights as the packed folder has them";
    if (!stored.quantization.empty())
      return str_cat("weights as the checkpoint means them (", stored.quantization, ")");
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
    if (types.kv == DType::kFloat32 || !is_narrow(model_width)) return std::string();
    return str_cat(" (a model ", model_width, " wide: in int8 from ", kLeastInt8Width, ")");
  };
  return str_cat("quantization auto: ", weights(), "; KV cache in ", dtype_name(types.kv), kv(),
                 "; weights in int8 and int4 are for who asks for them by name");
}

}  // namespace

StoredWeights stored_weights(const WeightMap& weights, const std::string& quantization) {
  const PackTag* tag = weights.pack_tag();
  return {weights.main_format(), tag != nullptr, tag != nullptr ? tag->storage : std::nullopt, quantization};
}

StatusOr<StorageTypes> storage_types(const EngineConfig& config, Isa isa, const StoredWeights& stored,
                                     int64_t model_width) {
  StorageTypes types;
  types.weights = named_storage(config);
  ASSIGN_OR_RETURN(types.kv, kv_dtype_of(config));
  if (config.quantization == "auto") {
    if (widens_float16_fast(isa)) {
      const bool is_free = config.dtype == "auto" && !stored.is_packed && stored.quantization.empty();
      if (is_free && stored.format == kFloat32Format) types.weights = kFloat16Format;
      if (config.kv_cache_dtype == "auto") types.kv = is_narrow(model_width) ? DType::kFloat16 : DType::kInt8;
    }
    types.report = auto_report(config, types, isa, stored, model_width);
  }
  types.as_packed = stored.is_packed && (!storage_is_asked(config) || types.weights == stored.packed_as);
  if (types.as_packed) types.weights = stored.packed_as;
  return types;
}

std::string faster_storage_note(const std::vector<PackedLayer>& layers, Isa isa) {
  double now = 0, in_int8 = 0, in_int4 = 0;
  for (const PackedLayer& layer : layers) {
    const auto bytes = static_cast<double>(layer.bytes), outputs = static_cast<double>(layer.n);
    const double weights = outputs * static_cast<double>(layer.k);
    const bool stays = layer.format.weights.is_codes() || is_narrow(std::min(layer.n, layer.k));
    now += bytes;
    in_int8 += stays ? bytes : weights + 8 * outputs;                          // a scale and a sum an output
    in_int4 += stays ? bytes : weights / 2 + 4 * weights / kInt4Format.group;  // a scale a group
  }
  if (isa == Isa::kGeneric || now == 0 || in_int8 > kWorthSaying * now) return "";
  const auto percent = [now](double bytes) { return str_cat(std::lround(100 * bytes / now), " %"); };
  return str_cat("faster by name: --quantization int8 reads ", percent(in_int8),
                 " of these bytes of weights a step, int4 ", percent(in_int4),
                 "; what each costs in words and tokens: docs/quantized.md");
}

void set_storage_flags(const std::optional<WeightFormat>& storage, EngineConfig& config) {
  const bool is_int4 = storage.has_value() && storage->is_nibbles();
  config.quantization = storage == kInt8Format ? "int8" : is_int4 ? "int4" : "none";
  if (storage.has_value() && !storage->is_codes()) config.dtype = weight_format_name(*storage);
}

}  // namespace transept
