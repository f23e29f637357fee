// The windows and weights of one axis of resize.h (libImaging, Resample.c, precompute_coeffs and
// normalize_coeffs_8bpc). Immutable: thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "media/resize_kernels.h"
#include "media/resize_options.h"

namespace transept {

class ResizeWeights final {
 public:
  // [begin, end): the part of in_size inputs that is resampled to out_size outputs; in float, as the reference has it.
  // REQUIRES: 0 <= begin <= end <= in_size; sizes of 1 to kMaxResizeSide; not kNearest.
  ResizeWeights(ResizeFilter filter, int32_t in_size, float begin, float end, int32_t out_size);

  const ResizeAxis& axis() const { return axis_; }
  int32_t max_count() const { return max_count_; }  // inputs of the largest window
  // First and last input that counts. Windows do not go back: both ends of each are at least those of the one before.
  int32_t first(int32_t output) const { return first_[static_cast<size_t>(output)]; }
  int32_t last(int32_t output) const { return first(output) + count_[static_cast<size_t>(output)]; }  // one past it

  ResizeWeights(const ResizeWeights&) = delete;
  ResizeWeights& operator=(const ResizeWeights&) = delete;

 private:
  std::vector<int32_t> first_, count_;
  std::vector<int16_t> high_, low_;
  int32_t max_count_ = 0;
  ResizeAxis axis_;
};

}  // namespace transept
