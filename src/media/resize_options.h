// How a picture is resampled (resize.h). Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace transept {

// Numbers are those of PIL.Image.Resampling, which preprocessor_config.json has in "resample".
enum class ResizeFilter : uint8_t { kNearest = 0, kLanczos = 1, kBilinear = 2, kBicubic = 3, kBox = 4, kHamming = 5 };
inline constexpr int kNumResizeFilters = 6;

// "nearest", "lanczos", ...
constexpr std::string_view resize_filter_name(ResizeFilter filter) {
  constexpr std::string_view kNames[] = {"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};
  return kNames[static_cast<int>(filter)];
}

// Half the length of the filter in pixels of the smaller picture; of kNearest 0.
constexpr double resize_filter_support(ResizeFilter filter) {
  constexpr double kSupport[] = {0, 3, 1, 2, 0.5, 1};
  return kSupport[static_cast<int>(filter)];
}

// A part of a picture in pixels; fractions are allowed, as `reducing_gap` makes them.
struct ResizeBox {
  double left = 0, top = 0, right = 0, bottom = 0;

  bool operator==(const ResizeBox&) const = default;
};

struct ResizeOptions {
  ResizeFilter filter = ResizeFilter::kBicubic;
  // Image.resize(reducing_gap=): the picture is first reduced by whole factors, so that it stays this many times larger
  // than the result; >= 1. None: it is not. kNearest takes none.
  std::optional<double> reducing_gap = {};
  std::optional<ResizeBox> box = {};  // none: the whole picture
};

}  // namespace transept
