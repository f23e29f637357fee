#include "media/resize_float.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "base/check.h"
#include "media/resize.h"

namespace transept {
namespace {

constexpr int kChannels = RgbImage::kNumChannels;

// HelperInterpBase::_compute_indices_min_size_weights_aa, for a support of one pixel.
struct FloatWindows {
  FloatWindows(int32_t in_size, int32_t out_size) {
    const float scale = static_cast<float>(in_size) / static_cast<float>(out_size);
    const float support = std::max(scale, 1.0f), step = scale >= 1 ? 1 / scale : 1;
    stride = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
    first.resize(static_cast<size_t>(out_size));
    count.resize(static_cast<size_t>(out_size));
    weights.resize(static_cast<size_t>(out_size) * static_cast<size_t>(stride));
    for (int32_t i = 0; i < out_size; ++i) {
      const auto center = static_cast<float>(scale * (i + 0.5));
      const auto low = center - support + 0.5, high = center + support + 0.5;  // cut, not rounded
      const auto from = std::max(static_cast<int32_t>(low), 0);
      const int32_t to = std::min(static_cast<int32_t>(high), in_size);
      const int32_t taps = std::clamp<int32_t>(to - from, 0, static_cast<int32_t>(stride));
      float* const weight = weights.data() + i * stride;
      float sum = 0;
      for (int32_t tap = 0; tap < taps; ++tap) {
        const auto distance = std::abs(static_cast<float>((static_cast<float>(tap + from) - center + 0.5) * step));
        weight[tap] = distance < 1 ? 1 - distance : 0;
        sum += weight[tap];
      }
      for (int32_t tap = 0; tap < taps && sum != 0; ++tap) weight[tap] /= sum;
      first[static_cast<size_t>(i)] = from;
      count[static_cast<size_t>(i)] = taps;
    }
  }

  std::vector<int32_t> first, count;
  std::vector<float> weights;  // [out_size, stride]
  int64_t stride;
};

// One row, its levels as values, at the new width.
class RowResizer {
 public:
  RowResizer(const RgbImage& image, const LevelValues& values, int32_t width)
      : image_(image),
        values_(values),
        width_(width),
        windows_(image.width, width),
        row_(static_cast<size_t>(image.width) * kChannels) {}

  void fill(int32_t y, float* out) {
    const uint8_t* const levels = image_.pixels.data() + int64_t{y} * image_.width * kChannels;
    for (size_t i = 0; i < row_.size(); ++i) row_[i] = values_[levels[i]];
    if (width_ == image_.width) {
      std::copy(row_.begin(), row_.end(), out);
      return;
    }
    for (int32_t x = 0; x < width_; ++x, out += kChannels) {
      const float* from = row_.data() + int64_t{windows_.first[static_cast<size_t>(x)]} * kChannels;
      const float* const weights = windows_.weights.data() + x * windows_.stride;
      float sums[kChannels] = {};
      for (int32_t tap = 0; tap < windows_.count[static_cast<size_t>(x)]; ++tap, from += kChannels) {
        for (int c = 0; c < kChannels; ++c) sums[c] += from[c] * weights[tap];
      }
      std::copy(sums, sums + kChannels, out);
    }
  }

 private:
  const RgbImage& image_;
  const LevelValues& values_;
  const int32_t width_;
  FloatWindows windows_;
  std::vector<float> row_;
};

void fill_values(const RgbImage& image, const LevelValues& values, int32_t width, int32_t height, float* out) {
  RowResizer rows(image, values, width);
  const int64_t row_size = int64_t{width} * kChannels;
  if (height == image.height) {
    for (int32_t y = 0; y < height; ++y) rows.fill(y, out + y * row_size);
    return;
  }
  const FloatWindows windows(image.height, height);
  std::vector<float> band(static_cast<size_t>(windows.stride) * static_cast<size_t>(row_size));  // row r: r % stride
  const auto band_row = [&](int32_t row) { return band.data() + row % windows.stride * row_size; };
  int32_t next = 0;
  for (int32_t y = 0; y < height; ++y, out += row_size) {
    const int32_t first = windows.first[static_cast<size_t>(y)], count = windows.count[static_cast<size_t>(y)];
    for (next = std::max(next, first); next < first + count; ++next) rows.fill(next, band_row(next));
    std::fill(out, out + row_size, 0.0f);
    for (int32_t tap = 0; tap < count; ++tap) {
      const float weight = windows.weights[static_cast<size_t>(y * windows.stride + tap)];
      const float* const from = band_row(first + tap);
      for (int64_t i = 0; i < row_size; ++i) out[i] += from[i] * weight;
    }
  }
}

}  // namespace

Status resize_values(const RgbImage& image, const LevelValues& values, int32_t width, int32_t height,
                     std::span<float> out) {
  for (const int32_t side : {width, height, image.width, image.height}) {
    if (side < 1 || side > kMaxResizeSide) {
      return invalid_argument("a side of ", side, " pixels: 1 to ", kMaxResizeSide, " are supported");
    }
  }
  const auto pixels = static_cast<size_t>(width) * static_cast<size_t>(height);
  CHECK(out.size() == pixels * kChannels &&
            image.pixels.size() == static_cast<size_t>(image.width) * static_cast<size_t>(image.height) * kChannels,
        "values that are not those of the sides");
  try {
    fill_values(image, values, width, height, out.data());
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory to resize ", image.width, " x ", image.height, " pixels to ", width, " x ",
                              height);
  }
  return ok_status();
}

}  // namespace transept
