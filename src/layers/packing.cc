#include "layers/packing.h"

#include <algorithm>

namespace transept {
namespace {

WeightFormat choose_format(const PackOptions& options, int64_t n, int64_t k, DType stored, LayerInputs inputs) {
  const DType storage = options.storage.value_or(stored);
  if (storage != DType::kInt8) return {storage};
  const bool is_narrow = std::min(n, k) < options.least_int8_width;
  if (inputs == LayerInputs::kRaw || k > kMaxInt8Inputs || is_narrow) return {stored};
  return {DType::kInt8, inputs == LayerInputs::kOutliers};
}

}  // namespace

PackedMatrix make_packed(const PackOptions& options, const std::string& name, int64_t n, int64_t k, DType stored,
                         LayerInputs inputs) {
  PackedMatrix packed(n, k, choose_format(options, n, k, stored, inputs), options.pool);
  if (options.report != nullptr) options.report->push_back({name, packed.format(), packed.bytes()});
  return packed;
}

}  // namespace transept
