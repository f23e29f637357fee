#include "media/resize_reduce.h"

#include <algorithm>
#include <cstring>

namespace transept {
namespace {

constexpr int kChannels = RgbImage::kNumChannels;

RgbImage make_image(int32_t width, int32_t height) {
  RgbImage image{width, height, {}};
  image.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * kChannels);
  return image;
}

const uint8_t* pixel_at(const RgbImage& image, int32_t x, int32_t y) {
  return image.pixels.data() + (int64_t{y} * image.width + x) * kChannels;
}

// sum / count, rounded half up, as the reference multiplies by the reciprocal: in single precision, 24 bits behind the
// point. Beyond 2^24 pixels its 32 bits run over; ours do not.
class Mean {
 public:
  explicit Mean(int64_t count) : count_(count) {
    constexpr int64_t kMaxReference = int64_t{1} << 24;
    if (count < kMaxReference) {
      reciprocal_ = static_cast<uint32_t>(4294967296.0f / static_cast<float>(static_cast<uint32_t>(count) << 8));
    }
  }
  uint8_t of(uint64_t sum) const {
    const uint64_t half = static_cast<uint64_t>(count_ / 2);
    if (reciprocal_ == 0) return static_cast<uint8_t>((sum + half) / static_cast<uint64_t>(count_));
    return static_cast<uint8_t>((static_cast<uint32_t>(sum + half) * reciprocal_) >> 24);
  }

 private:
  int64_t count_;
  uint32_t reciprocal_ = 0;
};

}  // namespace

RgbImage reduce_box(const RgbImage& image, int32_t factor_x, int32_t factor_y, const PixelBox& box) {
  const auto steps = [](int32_t begin, int32_t end, int32_t factor) {
    return static_cast<int32_t>((int64_t{end} - begin + factor - 1) / factor);
  };
  RgbImage out = make_image(steps(box.left, box.right, factor_x), steps(box.top, box.bottom, factor_y));
  std::vector<uint64_t> sums(static_cast<size_t>(out.width) * kChannels);
  const int64_t whole_width = std::min(int64_t{factor_x}, int64_t{box.right} - box.left);
  const int64_t last_width = int64_t{box.right} - box.left - int64_t{out.width - 1} * factor_x;
  for (int32_t y = 0; y < out.height; ++y) {
    const auto top = static_cast<int32_t>(box.top + int64_t{y} * factor_y);
    const auto bottom = static_cast<int32_t>(std::min(int64_t{top} + factor_y, int64_t{box.bottom}));
    std::fill(sums.begin(), sums.end(), 0);
    for (int32_t row = top; row < bottom; ++row) {
      const uint8_t* from = pixel_at(image, box.left, row);
      for (int32_t x = 0; x < out.width; ++x) {
        const int64_t count = x + 1 < out.width ? factor_x : last_width;
        uint64_t* const sum = sums.data() + int64_t{x} * kChannels;
        for (int64_t i = 0; i < count; ++i, from += kChannels) {
          for (int c = 0; c < kChannels; ++c) sum[c] += from[c];
        }
      }
    }
    const Mean whole(whole_width * (bottom - top)), last(last_width * (bottom - top));
    uint8_t* const to = out.pixels.data() + int64_t{y} * out.width * kChannels;
    for (size_t i = 0; i < sums.size(); ++i) to[i] = (i + kChannels < sums.size() ? whole : last).of(sums[i]);
  }
  return out;
}

RgbImage crop(const RgbImage& image, const PixelBox& box) {
  RgbImage out = make_image(box.right - box.left, box.bottom - box.top);
  const size_t row_bytes = static_cast<size_t>(out.width) * kChannels;
  for (int32_t y = 0; y < out.height; ++y) {
    std::memcpy(out.pixels.data() + static_cast<size_t>(y) * row_bytes, pixel_at(image, box.left, box.top + y),
                row_bytes);
  }
  return out;
}

}  // namespace transept
