#include "capi/model_options.h"

#include "capi/option_table.h"

namespace transept {
namespace {

constexpr double kMaxCount = 1 << 24;
constexpr double kMaxBytes = 9e18;

template <auto member>
OptionSlot slot(EngineConfig& config) {
  return &(config.*member);
}

using C = EngineConfig;
constexpr OptionRow<EngineConfig> kRows[] = {
    {"attention_backend", slot<&C::attention_backend>},
    {"block_size", slot<&C::block_size>, 1, 1024},
    {"cpu_affinity", slot<&C::cpu_affinity>},
    {"device", slot<&C::device>},
    {"dtype", slot<&C::dtype>},
    {"encode_slice", slot<&C::encode_slice>},
    {"isa", slot<&C::isa>},
    {"kv_cache_dtype", slot<&C::kv_cache_dtype>},
    {"kv_cache_memory", slot<&C::kv_cache_memory>, 0, kMaxBytes},
    {"max_model_len", slot<&C::max_model_len>, 1, kMaxCount},
    {"max_num_batched_tokens", slot<&C::max_num_batched_tokens>, 1, kMaxCount},
    {"max_num_encoder_tokens", slot<&C::max_num_encoder_tokens>, 1, kMaxCount},
    {"max_num_seqs", slot<&C::max_num_seqs>, 1, 65536},
    {"preemption_mode", slot<&C::preemption_mode>},
    {"quantization", slot<&C::quantization>},
    {"replicas", slot<&C::replicas>, 1, 1024},
    {"seed", slot<&C::seed>, 0, kMaxBytes},
    {"share_identical_inputs", slot<&C::share_identical_inputs>},
    {"shortlist", slot<&C::shortlist>},
    {"swap_space", slot<&C::swap_space>, 0, kMaxBytes},
    {"threads", slot<&C::threads>, 0, 1024},
    {"watermark", slot<&C::watermark>},
};

}  // namespace

StatusOr<EngineConfig> engine_config_of(const std::string& folder, const Json& options) {
  EngineConfig config;
  config.model = folder;
  RETURN_IF_ERROR(read_options(options, kRows, "a model", config));
  const Json* quantization = options.find("quantization");
  config.quantization_given = quantization != nullptr && !quantization->is_null();
  if (!(config.watermark >= 0 && config.watermark <= 0.99)) {
    return field_error("watermark", str_cat("watermark must be a number from 0 to 0.99, not ", config.watermark));
  }
#ifdef TRANSEPT_POISON
  config.debug_poison = true;
#endif
  return config;
}

}  // namespace transept
