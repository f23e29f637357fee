#include "multimodal/image_pixels.h"

#include <algorithm>
#include <cstring>

#include "media/resize.h"

namespace transept {
namespace {

constexpr int64_t kChannels = RgbImage::kNumChannels;
constexpr int64_t kMaxPixels = int64_t{1} << 26;

RgbImage black(const ImageSize& size) {
  RgbImage image{static_cast<int32_t>(size.width), static_cast<int32_t>(size.height), {}};
  image.pixels.resize(static_cast<size_t>(size.width * size.height * kChannels));
  return image;
}

// Towards minus infinity, as Python's //.
int64_t half(int64_t x) { return x >> 1; }

}  // namespace

StatusOr<RgbImage> resized(RgbImage image, const ImageSize& size, const ResizeOptions& options, Isa isa) {
  if (size == size_of(image)) return image;
  const auto is_side = [](int64_t side) { return side >= 1 && side <= kMaxImageSide; };
  if (!is_side(size.height) || !is_side(size.width) || size.height > kMaxPixels / size.width) {
    return invalid_argument("the picture of ", image.width, " x ", image.height, " pixels would become one of ",
                            size.width, " x ", size.height, ": sides of 1 to ", kMaxImageSide, " and at most ",
                            kMaxPixels, " pixels are supported");
  }
  return resize(image, static_cast<int32_t>(size.width), static_cast<int32_t>(size.height), options, isa);
}

RgbImage turned(const RgbImage& image) {
  RgbImage out = black({image.width, image.height});
  uint8_t* to = out.pixels.data();
  for (int64_t x = 0; x < image.width; ++x) {
    for (int64_t y = image.height - 1; y >= 0; --y, to += kChannels)
      std::memcpy(to, image.pixels.data() + (y * image.width + x) * kChannels, kChannels);
  }
  return out;
}

RgbImage placed(const RgbImage& image, const ImageSize& size, int64_t top, int64_t left) {
  RgbImage out = black(size);
  const int64_t begin = std::max<int64_t>(left, 0), end = std::min(left + image.width, size.width);
  if (begin >= end) return out;
  for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + image.height, size.height); ++y) {
    std::memcpy(out.pixels.data() + (y * size.width + begin) * kChannels,
                image.pixels.data() + ((y - top) * image.width + begin - left) * kChannels,
                static_cast<size_t>((end - begin) * kChannels));
  }
  return out;
}

RgbImage center_cropped(const RgbImage& image, const ImageSize& size) {
  return placed(image, size, -half(image.height - size.height), -half(image.width - size.width));
}

PixelTable::PixelTable(const PixelOptions& options) {
  for (size_t channel = 0; channel < values_.size(); ++channel) {
    for (size_t level = 0; level < values_[channel].size(); ++level) {
      const auto x = static_cast<double>(level);
      auto value = static_cast<float>(options.do_rescale ? x * options.rescale_factor : x);
      if (options.do_normalize) {
        value = (value - static_cast<float>(options.mean[channel])) / static_cast<float>(options.std[channel]);
      }
      values_[channel][level] = value;
    }
  }
}

void PixelTable::fill(const RgbImage& image, const Place& place, float* out) const {
  for (int64_t y = 0; y < place.height; ++y) {
    const uint8_t* from = image.pixels.data() + ((place.top + y) * image.width + place.left) * kChannels;
    float* const red = out + y * place.row_stride;
    float* const green = red + place.channel_stride;
    float* const blue = green + place.channel_stride;
    for (int64_t x = 0; x < place.width; ++x, from += kChannels) {
      red[x] = values_[0][from[0]];
      green[x] = values_[1][from[1]];
      blue[x] = values_[2][from[2]];
    }
  }
}

}  // namespace transept
