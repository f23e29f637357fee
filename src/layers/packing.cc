#include "layers/packing.h"

#include <algorithm>

namespace transept {
namespace {

WeightFormat choose_format(const PackOptions& options, int64_t n, int64_t k, DType stored, LayerInputs inputs) {
  const DType storage = options.storage.value_or(stored);
  if (storage != DType::kInt8) {
    // Only for who asked for it by name: otherwise a checkpoint's 16 bits would change its answers.
    const bool is_asked = options.storage == DType::kBFloat16 && inputs != LayerInputs::kRaw;
    return {.storage = storage, .bfloat16_inputs = is_asked};
  }
  const bool is_narrow = std::min(n, k) < options.least_int8_width;
  if (inputs == LayerInputs::kRaw || k > kMaxInt8Inputs || is_narrow) return {stored};
  return {.storage = DType::kInt8, .wide_inputs = inputs == LayerInputs::kOutliers};
}

}  // namespace

PackedMatrix make_packed(const PackOptions& options, const std::string& name, int64_t n, int64_t k, DType stored,
                         LayerInputs inputs) {
  PackedMatrix packed(n, k, choose_format(options, n, k, stored, inputs), options.pool);
  if (options.report != nullptr) options.report->push_back({name, packed.format(), packed.bytes()});
  return packed;
}

}  // namespace transept
