#include "media/resize_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {
namespace {

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double bilinear(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double hamming(double x) {
  x = std::abs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= std::numbers::pi;
  return std::sin(x) / x * (0.54f + 0.46f * std::cos(x));  // the reference's constants are of single precision
}

double bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

struct Filter {
  double (*weight)(double x);
  double support;
};

Filter filter_of(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::kNearest: break;
    case ResizeFilter::kLanczos: return {lanczos, resize_filter_support(filter)};
    case ResizeFilter::kBilinear: return {bilinear, resize_filter_support(filter)};
    case ResizeFilter::kBicubic: return {bicubic, resize_filter_support(filter)};
    case ResizeFilter::kBox: return {box, resize_filter_support(filter)};
    case ResizeFilter::kHamming: return {hamming, resize_filter_support(filter)};
  }
  CHECK(false, "a filter without weights");
  return {};
}

// Half away from zero.
int32_t rounded(double weight) {
  const double scaled = weight * (1 << kResizeWeightBits);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

}  // namespace

ResizeWeights::ResizeWeights(ResizeFilter kind, int32_t in_size, float begin, float end, int32_t out_size) {
  const Filter filter = filter_of(kind);
  const double scale = static_cast<double>(end - begin) / out_size;
  const double filter_scale = std::max(scale, 1.0);
  const double support = filter.support * filter_scale, step = 1.0 / filter_scale;
  const int64_t most = std::min<int64_t>(in_size, int64_t{2} * static_cast<int64_t>(std::ceil(support)) + 1);
  axis_.stride = round_up(most, kResizeTapStep);
  const auto outputs = static_cast<size_t>(out_size);
  first_.resize(outputs);
  count_.resize(outputs);
  high_.resize(outputs * static_cast<size_t>(axis_.stride));
  low_.resize(high_.size());
  std::vector<double> weights(static_cast<size_t>(most));
  for (int32_t i = 0; i < out_size; ++i) {
    const double center = begin + (i + 0.5) * scale;
    const double low = center - support + 0.5, high = center + support + 0.5;  // cut, not rounded
    const int32_t first = std::max(static_cast<int32_t>(low), 0);
    const int32_t count = std::min(static_cast<int32_t>(high), in_size) - first;
    CHECK(count >= 0 && count <= most, "a window beyond the picture");
    double sum = 0;
    for (int32_t tap = 0; tap < count; ++tap) {
      const double weight = filter.weight((tap + first - center + 0.5) * step);
      weights[static_cast<size_t>(tap)] = weight;
      sum += weight;
    }
    const size_t at = static_cast<size_t>(i) * static_cast<size_t>(axis_.stride);
    for (int32_t tap = 0; tap < count; ++tap) {
      const double weight = weights[static_cast<size_t>(tap)];
      const int32_t parts = rounded(sum != 0.0 ? weight / sum : weight);
      // A window holds a good part of its filter's middle, so weights stay below 4.
      CHECK(std::abs(parts) < 1 << (kResizeLowBits + 15), "a weight beyond 16 bits");
      high_[at + static_cast<size_t>(tap)] = static_cast<int16_t>(parts >> kResizeLowBits);
      low_[at + static_cast<size_t>(tap)] = static_cast<int16_t>(parts & ((1 << kResizeLowBits) - 1));
    }
    first_[static_cast<size_t>(i)] = first;
    count_[static_cast<size_t>(i)] = count;
    max_count_ = std::max(max_count_, count);
  }
  axis_.first = first_.data();
  axis_.count = count_.data();
  axis_.high = high_.data();
  axis_.low = low_.data();
}

}  // namespace transept
