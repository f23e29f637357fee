#include "quantized/make_matrix_reader.h"

#include "quantized/awq_reader.h"
#include "quantized/bitsandbytes_reader.h"
#include "quantized/compressed_reader.h"
#include "quantized/float8_reader.h"
#include "quantized/gptq_reader.h"
#include "quantized/quanto_reader.h"
#include "weights/weight_map.h"

namespace transept {
namespace {

using Reader = std::unique_ptr<MatrixReader>;

struct Make {
  Reader operator()(const std::monostate& /*refused*/) const { return nullptr; }
  Reader operator()(const CompressedConfig& config) const { return std::make_unique<CompressedReader>(config); }
  Reader operator()(const BitsandbytesConfig& /*config*/) const { return std::make_unique<BitsandbytesReader>(); }
  Reader operator()(const GptqConfig& config) const { return std::make_unique<GptqReader>(config); }
  Reader operator()(const AwqConfig& config) const { return std::make_unique<AwqReader>(config); }
  Reader operator()(const Float8Config& config) const { return std::make_unique<Float8Reader>(config); }
  Reader operator()(const QuantoConfig& /*config*/) const { return std::make_unique<QuantoReader>(); }
};

}  // namespace

std::unique_ptr<MatrixReader> make_matrix_reader(const QuantizationConfig& config) {
  return std::visit(Make(), config.settings);
}

int ignore_scales_of_activations(WeightMap& weights) {
  int num_of_kv = 0;
  weights.ignore_where([&](std::string_view name) {
    for (const std::string_view ending : {".k_scale", ".v_scale", ".q_scale", ".kv_scale"}) {
      if (name.ends_with(ending)) return ++num_of_kv > 0;
    }
    for (const std::string_view ending :
         {".input_scale", ".input_zero_point", ".output_scale", ".output_zero_point", ".input_scale_ub"}) {
      if (name.ends_with(ending)) return true;
    }
    return false;
  });
  return num_of_kv;
}

}  // namespace transept
