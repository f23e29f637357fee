#include "quantized/float8_reader.h"

#include "quantized/scaled_float8.h"

namespace transept {

bool Float8Reader::has(const WeightMap& weights, std::string_view name) const {
  const auto form = weights.form_of(name);
  return !module_of(name).empty() && form.has_value() && form->dtype == "F8_E4M3";
}

StatusOr<std::unique_ptr<MatrixSource>> Float8Reader::open(WeightMap& weights, std::string_view name, int64_t n,
                                                           int64_t k, WeightUse use) const {
  MatrixParts parts(weights, use);
  ASSIGN_OR_RETURN(const StoredBytes codes, parts.bytes(name, "F8_E4M3", {n, k}));
  std::string scale = str_cat(module_of(name), ".weight_scale_inv");
  if (!parts.has(scale)) scale = str_cat(module_of(name), ".weight_scale");
  return open_scaled_float8(parts, codes, scale, n, k, {config_.block_outputs, config_.block_inputs});
}

}  // namespace transept
