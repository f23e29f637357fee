#include "media/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "base/check.h"
#include "media/resize_passes.h"
#include "media/resize_reduce.h"

namespace transept {
namespace {

constexpr int kChannels = RgbImage::kNumChannels;
constexpr int64_t kTall = 100;  // times higher than wide: the vertical pass goes first

struct Size {
  int32_t width, height;
};

Status check_side(std::string_view name, int32_t side) {
  if (side >= 1 && side <= kMaxResizeSide) return ok_status();
  return field_error(name, str_cat("must be 1 to ", kMaxResizeSide, ", is ", side));
}

Status check(const RgbImage& image, const Size& size, const ResizeOptions& options) {
  RETURN_IF_ERROR(check_side("width", size.width));
  RETURN_IF_ERROR(check_side("height", size.height));
  RETURN_IF_ERROR(check_side("the picture's width", image.width));
  RETURN_IF_ERROR(check_side("the picture's height", image.height));
  CHECK(image.pixels.size() == static_cast<size_t>(image.width) * static_cast<size_t>(image.height) * kChannels,
        "a picture whose pixels are not those of its sides");
  // Written so that a NaN is refused too.
  if (options.reducing_gap.has_value() && !(*options.reducing_gap >= 1)) {
    return field_error("reducing_gap", "must be at least 1");
  }
  if (!options.box.has_value()) return ok_status();
  const ResizeBox& box = *options.box;
  const bool is_within = box.left >= 0 && box.top >= 0 && box.right <= image.width && box.bottom <= image.height;
  if (!is_within || !(box.left < box.right && box.top < box.bottom)) {
    return field_error("box", str_cat("must be a part of the picture, ", image.width, " x ", image.height));
  }
  return ok_status();
}

// The pixels that an axis takes (ImagingScaleAffine): positions add up, so they may run out of the picture at the end.
std::vector<int32_t> nearest_places(int32_t in_size, float begin, float end, int32_t out_size) {
  constexpr int32_t kOutside = -1;
  std::vector<int32_t> places(static_cast<size_t>(out_size), kOutside);
  const double step = static_cast<double>(end - begin) / out_size;
  double at = begin + step * 0.5;
  for (int32_t& place : places) {
    if (at < in_size) place = static_cast<int32_t>(at);
    at += step;
  }
  return places;
}

RgbImage resize_nearest(const RgbImage& image, const Size& size, const FloatBox& box) {
  const std::vector<int32_t> columns = nearest_places(image.width, box.left, box.right, size.width);
  const std::vector<int32_t> rows = nearest_places(image.height, box.top, box.bottom, size.height);
  RgbImage out{size.width, size.height, {}};
  out.pixels.resize(static_cast<size_t>(size.width) * static_cast<size_t>(size.height) * kChannels);
  uint8_t* to = out.pixels.data();
  for (const int32_t row : rows) {
    for (const int32_t column : columns) {
      if (row >= 0 && column >= 0) {  // else black
        std::memcpy(to, image.pixels.data() + (int64_t{row} * image.width + column) * kChannels, kChannels);
      }
      to += kChannels;
    }
  }
  return out;
}

// One call of libImaging (_imaging.c, _resize).
RgbImage resize_box(const RgbImage& image, const Size& size, ResizeFilter filter, const ResizeBox& part, Isa isa) {
  const FloatBox box{static_cast<float>(part.left), static_cast<float>(part.top), static_cast<float>(part.right),
                     static_cast<float>(part.bottom)};
  const bool keeps_size =
      box.right - box.left == static_cast<float>(size.width) && box.bottom - box.top == static_cast<float>(size.height);
  if (keeps_size && box.left == std::floor(box.left) && box.top == std::floor(box.top)) {
    const auto left = static_cast<int32_t>(box.left), top = static_cast<int32_t>(box.top);
    return crop(image, {left, top, left + size.width, top + size.height});
  }
  if (filter == ResizeFilter::kNearest) return resize_nearest(image, size, box);
  return resample(image, size.width, size.height, filter, box, resize_kernels(isa));
}

// The box, and what the filter may read of the pixels around it (Image.py, _get_safe_box).
PixelBox safe_box(const RgbImage& image, const Size& size, ResizeFilter filter, const ResizeBox& box) {
  const double support = resize_filter_support(filter) - 0.5;
  const double x = support * ((box.right - box.left) / size.width);
  const double y = support * ((box.bottom - box.top) / size.height);
  return {static_cast<int32_t>(std::max(0.0, box.left - x)), static_cast<int32_t>(std::max(0.0, box.top - y)),
          static_cast<int32_t>(std::min<double>(image.width, std::ceil(box.right + x))),
          static_cast<int32_t>(std::min<double>(image.height, std::ceil(box.bottom + y)))};
}

RgbImage resize_tall(const RgbImage& image, const Size& size, ResizeFilter filter, const ResizeBox& box, Isa isa) {
  if (image.height <= image.width * kTall || size.height >= image.height) {
    return resize_box(image, size, filter, box, isa);
  }
  const RgbImage lower = resize_box(image, {image.width, size.height}, filter,
                                    {0, box.top, static_cast<double>(image.width), box.bottom}, isa);
  return resize_box(lower, size, filter, {box.left, 0, box.right, static_cast<double>(size.height)}, isa);
}

RgbImage resize_checked(const RgbImage& image, const Size& size, const ResizeOptions& options, Isa isa) {
  const ResizeBox whole{0, 0, static_cast<double>(image.width), static_cast<double>(image.height)};
  const ResizeBox box = options.box.value_or(whole);
  if (size.width == image.width && size.height == image.height && box == whole) return image;
  if (!options.reducing_gap.has_value() || options.filter == ResizeFilter::kNearest) {
    return resize_tall(image, size, options.filter, box, isa);
  }
  const double gap = *options.reducing_gap;
  const int32_t factor_x = std::max(1, static_cast<int32_t>((box.right - box.left) / size.width / gap));
  const int32_t factor_y = std::max(1, static_cast<int32_t>((box.bottom - box.top) / size.height / gap));
  if (factor_x == 1 && factor_y == 1) return resize_tall(image, size, options.filter, box, isa);
  const PixelBox from = safe_box(image, size, options.filter, box);
  const RgbImage reduced = reduce_box(image, factor_x, factor_y, from);
  const ResizeBox rest{(box.left - from.left) / factor_x, (box.top - from.top) / factor_y,
                       (box.right - from.left) / factor_x, (box.bottom - from.top) / factor_y};
  return resize_tall(reduced, size, options.filter, rest, isa);
}

}  // namespace

StatusOr<RgbImage> resize(const RgbImage& image, int32_t width, int32_t height, const ResizeOptions& options, Isa isa) {
  const Size size{width, height};
  RETURN_IF_ERROR(check(image, size, options));
  try {
    return resize_checked(image, size, options, isa);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory to resize ", image.width, " x ", image.height, " pixels to ", width, " x ",
                              height);
  }
}

RgbImage reduce(const RgbImage& image, int32_t factor_x, int32_t factor_y) {
  return reduce_box(image, factor_x, factor_y, {0, 0, image.width, image.height});
}

}  // namespace transept
