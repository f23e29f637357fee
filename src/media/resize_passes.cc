#include "media/resize_passes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "media/resize_weights.h"

namespace transept {
namespace {

constexpr int kChannels = RgbImage::kNumChannels;
constexpr int32_t kRowsAtOnce = 4;  // that are resampled together
// Rows between the passes: of a strip of columns, so that they stay in the second-level cache.
constexpr int64_t kBandBytes = int64_t{512} << 10;
constexpr int32_t kLeastStrip = 64;  // columns

class TwoPasses {
 public:
  // x: null if the widths are equal. y: always there; `is_y_needed` if it is to be applied.
  TwoPasses(const RgbImage& in, RgbImage& out, const ResizeWeights* x, const ResizeWeights& y, bool is_y_needed,
            const ResizeKernels& kernels)
      : in_(in), out_(out), x_(x), y_(y), kernels_(kernels), in_bytes_(int64_t{in.width} * kChannels) {
    num_band_rows_ = y.max_count() + kRowsAtOnce;
    strip_ = out.width;
    if (x == nullptr) return;
    const int64_t row_bytes = in_bytes_ + kResizeSlackBytes;
    edge_rows_.resize(static_cast<size_t>(row_bytes * kRowsAtOnce));
    if (!is_y_needed) return;
    const int64_t columns = kBandBytes / (int64_t{num_band_rows_} * kChannels);
    strip_ = static_cast<int32_t>(std::clamp<int64_t>(columns, std::min(kLeastStrip, out.width), out.width));
    band_.resize(static_cast<size_t>(num_band_rows_) * static_cast<size_t>(strip_) * kChannels);
    window_.resize(static_cast<size_t>(y.max_count()));
  }

  void horizontal() {
    for (int32_t row = 0; row < out_.height; row += kRowsAtOnce) {
      uint8_t* to[kRowsAtOnce];
      const int32_t count = std::min(kRowsAtOnce, out_.height - row);
      for (int32_t i = 0; i < count; ++i) to[i] = out_row(row + i);
      resample_rows(row, count, 0, out_.width, to);
    }
  }

  void vertical() {
    window_.resize(static_cast<size_t>(y_.max_count()));
    for (int32_t y = 0; y < out_.height; ++y) {
      for (int32_t row = y_.first(y); row < y_.last(y); ++row)
        window_[static_cast<size_t>(row - y_.first(y))] = in_row(row);
      kernels_.vertical(y_.axis(), y, window_.data(), in_bytes_, out_row(y));
    }
  }

  void both() {
    for (int32_t begin = 0; begin < out_.width; begin += strip_) both(begin, std::min(begin + strip_, out_.width));
  }

 private:
  const uint8_t* in_row(int32_t row) const { return in_.pixels.data() + row * in_bytes_; }
  uint8_t* out_row(int32_t row) { return out_.pixels.data() + int64_t{row} * out_.width * kChannels; }
  uint8_t* band_row(int32_t row) { return band_.data() + int64_t{row % num_band_rows_} * strip_ * kChannels; }

  // Columns [begin, end) of the result. The band holds the last rows of the picture, resampled to these columns.
  void both(int32_t begin, int32_t end) {
    int32_t next = y_.first(0);
    for (int32_t y = 0; y < out_.height; ++y) {
      while (next < y_.last(y)) {
        uint8_t* to[kRowsAtOnce];
        const int32_t count = std::min(kRowsAtOnce, in_.height - next);
        for (int32_t i = 0; i < count; ++i) to[i] = band_row(next + i);
        resample_rows(next, count, begin, end, to);
        next += count;
      }
      for (int32_t row = y_.first(y); row < y_.last(y); ++row)
        window_[static_cast<size_t>(row - y_.first(y))] = band_row(row);
      kernels_.vertical(y_.axis(), y, window_.data(), int64_t{end - begin} * kChannels,
                        out_row(y) + int64_t{begin} * kChannels);
    }
  }

  // Kernels read beyond a row's end: of the last rows, copies with room behind them.
  void resample_rows(int32_t row, int32_t count, int32_t begin, int32_t end, uint8_t* const* to) {
    const uint8_t* from[kRowsAtOnce];
    const uint8_t* const pixels_end = in_.pixels.data() + in_.pixels.size();
    for (int32_t i = 0; i < count; ++i) {
      from[i] = in_row(row + i);
      if (pixels_end - from[i] >= in_bytes_ + kResizeSlackBytes) continue;
      uint8_t* const copy = edge_rows_.data() + i * (in_bytes_ + kResizeSlackBytes);
      std::memcpy(copy, from[i], static_cast<size_t>(in_bytes_));
      from[i] = copy;
    }
    kernels_.horizontal(x_->axis(), begin, end, from, count, to);
  }

  const RgbImage& in_;
  RgbImage& out_;
  const ResizeWeights* const x_;
  const ResizeWeights& y_;
  const ResizeKernels& kernels_;
  const int64_t in_bytes_;  // of a row
  int32_t num_band_rows_, strip_;
  std::vector<uint8_t> band_;       // [num_band_rows_, strip_, channels]: row r stands at r modulo their number
  std::vector<uint8_t> edge_rows_;  // [kRowsAtOnce, in_bytes_ + slack]
  std::vector<const uint8_t*> window_;
};

}  // namespace

const ResizeKernels& resize_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::kAvx512) return avx512::kResizeKernels;
  if (isa >= Isa::kAvx2) return avx2::kResizeKernels;
#endif
  (void)isa;
  return generic::kResizeKernels;
}

RgbImage resample(const RgbImage& image, int32_t width, int32_t height, ResizeFilter filter, const FloatBox& box,
                  const ResizeKernels& kernels) {
  const auto w = static_cast<float>(width), h = static_cast<float>(height);
  const bool is_x_needed = width != image.width || box.left != 0 || box.right != w;
  const bool is_y_needed = height != image.height || box.top != 0 || box.bottom != h;
  if (!is_x_needed && !is_y_needed) return image;
  const ResizeWeights y(filter, image.height, box.top, box.bottom, height);
  std::unique_ptr<ResizeWeights> x;
  if (is_x_needed) x = std::make_unique<ResizeWeights>(filter, image.width, box.left, box.right, width);
  RgbImage out{width, height, {}};
  out.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * kChannels);
  TwoPasses passes(image, out, x.get(), y, is_y_needed, kernels);
  if (!is_y_needed) {
    passes.horizontal();
  } else if (!is_x_needed) {
    passes.vertical();
  } else {
    passes.both();
  }
  return out;
}

}  // namespace transept
