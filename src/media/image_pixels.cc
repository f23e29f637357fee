#include "media/image_pixels.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {
namespace {

constexpr int64_t kMostBytesOfPixel = 256;  // of all that decoders take, by far
constexpr int kChannels = RgbImage::kNumChannels;

// The first writes to pages of 4 KiB take a third of the time that a large JPEG takes.
void ask_for_large_pages(uint8_t* data, size_t size) {
  constexpr size_t kLargePage = size_t{2} << 20;
  constexpr uintptr_t kPage = 4096;
  if (size < 2 * kLargePage) return;
  const uintptr_t start = (reinterpret_cast<uintptr_t>(data) + kPage - 1) / kPage * kPage;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + size) / kPage * kPage;
  ::madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
}

void copy_pixel(uint8_t* to, const uint8_t* from) {
  to[0] = from[0];
  to[1] = from[1];
  to[2] = from[2];
}

}  // namespace

Status check_image_size(int64_t width, int64_t height, const ImageLimits& limits) {
  if (width <= 0 || height <= 0) return invalid_argument("is ", width, " x ", height, ": a picture without pixels");
  if (std::max(width, height) > limits.max_side) {
    return invalid_argument("is ", width, " x ", height, "; a side has at most ", limits.max_side, " pixels");
  }
  const int64_t num_pixels = width * height;  // sides have 31 bits
  if (num_pixels > limits.max_pixels || !checked_mul(num_pixels, kMostBytesOfPixel)) {
    return invalid_argument("is ", width, " x ", height, ", ", num_pixels, " pixels; the limit is ", limits.max_pixels);
  }
  return ok_status();
}

OrientedRows::OrientedRows(const ImageInfo& info) : width_(info.width), height_(info.height) {
  image_.width = info.oriented_width();
  image_.height = info.oriented_height();
  const ptrdiff_t w = width_, h = height_, stride = ptrdiff_t{image_.width} * kChannels;
  // Where (0, 0), (1, 0) and (0, 1) go (ImageOps.exif_transpose).
  switch (info.orientation) {
    case 2:  // left and right are changed
      first_ = (w - 1) * kChannels, pixel_step_ = -kChannels, row_step_ = stride;
      break;
    case 3:  // half a turn
      first_ = (h - 1) * stride + (w - 1) * kChannels, pixel_step_ = -kChannels, row_step_ = -stride;
      break;
    case 4:  // top and bottom are changed
      first_ = (h - 1) * stride, pixel_step_ = kChannels, row_step_ = -stride;
      break;
    case 5:  // rows are columns
      first_ = 0, pixel_step_ = stride, row_step_ = kChannels;
      break;
    case 6:  // a quarter turn to the right
      first_ = (h - 1) * kChannels, pixel_step_ = stride, row_step_ = -kChannels;
      break;
    case 7:  // rows are columns, from the other corner
      first_ = (w - 1) * stride + (h - 1) * kChannels, pixel_step_ = -stride, row_step_ = -kChannels;
      break;
    case 8:  // a quarter turn to the left
      first_ = (w - 1) * stride, pixel_step_ = -stride, row_step_ = kChannels;
      break;
    default: first_ = 0, pixel_step_ = kChannels, row_step_ = stride; break;
  }
  is_appended_ = info.orientation == 1;
  image_.pixels.reserve(num_bytes());
  ask_for_large_pages(image_.pixels.data(), num_bytes());
  if (!is_appended_) image_.pixels.resize(num_bytes());
  group_.resize(static_cast<size_t>(w * kChannels) * kGroup);
}

size_t OrientedRows::num_bytes() const {
  return static_cast<size_t>(width_) * static_cast<size_t>(height_) * kChannels;
}

size_t OrientedRows::bytes_needed(const ImageInfo& info) {
  const size_t row_bytes = size_t{kChannels} * static_cast<size_t>(info.width);
  return row_bytes * static_cast<size_t>(info.height) + row_bytes * kGroup;
}

uint8_t* OrientedRows::row(int32_t y) {
  DCHECK(y >= group_start_ && y < height_);
  if (y >= group_start_ + kGroup) {
    flush();
    group_start_ = y - y % kGroup;
  }
  return group_.data() + ptrdiff_t{y - group_start_} * width_ * kChannels;
}

// Of a quarter turn the file's column is written as a row's piece, so that each line of the cache is filled at once.
void OrientedRows::flush() {
  const int32_t num_rows = std::min(kGroup, height_ - group_start_);
  const ptrdiff_t from_stride = ptrdiff_t{width_} * kChannels;
  if (is_appended_) {
    image_.pixels.insert(image_.pixels.end(), group_.begin(), group_.begin() + num_rows * from_stride);
    return;
  }
  uint8_t* to = image_.pixels.data() + first_ + group_start_ * row_step_;
  const uint8_t* from = group_.data();
  for (int32_t x = 0; x < width_; ++x, to += pixel_step_, from += kChannels) {
    for (int32_t y = 0; y < num_rows; ++y) copy_pixel(to + y * row_step_, from + y * from_stride);
  }
}

void OrientedRows::put(int32_t y, int32_t first_x, int32_t step, int32_t count, const uint8_t* rgb) {
  if (group_start_ == 0) whole();
  uint8_t* to = image_.pixels.data() + first_ + y * row_step_ + first_x * pixel_step_;
  for (int32_t i = 0; i < count; ++i) copy_pixel(to + i * (step * pixel_step_), rgb + ptrdiff_t{i} * kChannels);
}

uint8_t* OrientedRows::whole() {
  image_.pixels.resize(num_bytes());
  group_start_ = height_;  // no row is left to be turned
  return image_.pixels.data();
}

RgbImage OrientedRows::finish() {
  if (group_start_ < height_) flush();
  return std::move(image_);
}

}  // namespace transept
