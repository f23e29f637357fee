#include "device_vulkan/vulkan_model_device.h"

#include <optional>

namespace transept {

void VulkanModelDevice::note_product(const PackedMatrix& w) {
  const WeightFormat& weights = w.format().weights;
  if (weights != kFloat16Format && weights != kBFloat16Format && weights != kInt8Format) return;
  products_.insert({weights, w.format().inputs, w.n(), w.k()});
  if (weights == kBFloat16Format) bfloat16_.emplace(w.panels(), w.views().panels.size());
}

Status VulkanModelDevice::choose_forms(std::vector<std::string>& report) {
  ASSIGN_OR_RETURN(const VulkanSpace::TriedMatrices tried, space_->tried_matrices(products_));
  report.insert(report.end(), tried.report.begin(), tried.report.end());
  forms_ = tried.forms;
  if (forms_.half_rows == 0 || bfloat16_.empty()) return ok_status();
  Status status;
  space_->with_timeline([&](VulkanTimeline& timeline) {
    for (const auto& [panels, bytes] : bfloat16_) {
      const StatusOr<std::optional<uint32_t>> exponent = half_exponent(timeline, panels, bytes);
      if (status.ok()) status = exponent.status();
      if (exponent.ok() && exponent->has_value()) exponents_[panels] = **exponent;
    }
  });
  RETURN_IF_ERROR(status);
  if (const size_t left = bfloat16_.size() - exponents_.size(); left > 0) {
    report.push_back(str_cat("matrices: bfloat16: ", left, " of ", bfloat16_.size(),
                             " matrices have numbers that float16 cannot hold beside the largest: by shader cores"));
  }
  return ok_status();
}

DeviceTiling VulkanModelDevice::tiling_of(const PackedMatrix& w) const {
  const WeightFormat& weights = w.format().weights;
  if (weights == kInt8Format) return {.rows = forms_.int8_rows};
  if (weights == kFloat16Format) return {.rows = forms_.half_rows, .rounds_inputs = forms_.rounds_inputs};
  const auto exponent = weights == kBFloat16Format ? exponents_.find(w.panels()) : exponents_.end();
  if (exponent == exponents_.end()) return {};
  return {forms_.half_rows, forms_.rounds_inputs, exponent->second};
}

}  // namespace transept
