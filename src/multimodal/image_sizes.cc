#include "multimodal/image_sizes.h"

#include <algorithm>
#include <cmath>

namespace transept {
namespace {

double quotient(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }
int64_t whole(double x) { return static_cast<int64_t>(x); }  // Python's int()

// Python's round(): the even one of two that are as near.
double round_even(double x) { return std::nearbyint(x); }

}  // namespace

ImageSize shortest_edge_size(const ImageSize& in, int64_t edge) {
  const bool is_tall = in.width <= in.height;
  const int64_t shorter = is_tall ? in.width : in.height, longer = is_tall ? in.height : in.width;
  const int64_t other = whole(quotient(edge * longer, shorter));
  return is_tall ? ImageSize{other, edge} : ImageSize{edge, other};
}

ImageSize bounded_edge_size(const ImageSize& in, int64_t edge, int64_t longest) {
  const auto shorter = static_cast<double>(std::min(in.height, in.width));
  const auto longer = static_cast<double>(std::max(in.height, in.width));
  std::optional<double> exact;
  if (longer / shorter * static_cast<double>(edge) > static_cast<double>(longest)) {
    exact = static_cast<double>(longest) * shorter / longer;
    edge = whole(round_even(*exact));
  }
  if ((in.height <= in.width && in.height == edge) || (in.width <= in.height && in.width == edge)) return in;
  const double scale = exact.value_or(static_cast<double>(edge));
  if (in.width < in.height) {
    return {whole(scale * static_cast<double>(in.height) / static_cast<double>(in.width)), edge};
  }
  return {edge, whole(scale * static_cast<double>(in.width) / static_cast<double>(in.height))};
}

ImageSize inner_size(const ImageSize& in, const ImageSize& most) {
  const double scale = std::min(quotient(most.height, in.height), quotient(most.width, in.width));
  return {whole(static_cast<double>(in.height) * scale), whole(static_cast<double>(in.width) * scale)};
}

std::optional<ImageSize> thumbnail_size(const ImageSize& in, const ImageSize& most) {
  ImageSize out{std::min(in.height, most.height), std::min(in.width, most.width)};
  if (out == in) return std::nullopt;
  if (in.height > in.width) {
    out.width = whole(quotient(in.width * out.height, in.height));
  } else if (in.width > in.height) {
    out.height = whole(quotient(in.height * out.width, in.width));
  }
  return out;
}

ImageSize smart_size(const ImageSize& in, int64_t factor, int64_t min_pixels, int64_t max_pixels) {
  const auto f = static_cast<double>(factor);
  const auto height = static_cast<double>(in.height), width = static_cast<double>(in.width);
  ImageSize out{whole(round_even(height / f)) * factor, whole(round_even(width / f)) * factor};
  if (out.height * out.width > max_pixels) {
    const double beta = std::sqrt(quotient(in.height * in.width, max_pixels));
    out = {std::max(factor, whole(std::floor(height / beta / f)) * factor),
           std::max(factor, whole(std::floor(width / beta / f)) * factor)};
  } else if (out.height * out.width < min_pixels) {
    const double beta = std::sqrt(quotient(min_pixels, in.height * in.width));
    out = {whole(std::ceil(height * beta / f)) * factor, whole(std::ceil(width * beta / f)) * factor};
  }
  return out;
}

ImageSize patch_grid(const ImageSize& in, const ImageSize& patch, int64_t max_patches) {
  // pow() as the reference, not sqrt(): they differ in the last bit, and int() cuts what is below a whole number.
  const double scale = std::pow(
      static_cast<double>(max_patches) * quotient(patch.height, in.height) * quotient(patch.width, in.width), 0.5);
  const auto count = [&](int64_t side, int64_t patch_side) {
    const int64_t fitting = whole(scale * static_cast<double>(side) / static_cast<double>(patch_side));
    return std::max<int64_t>(std::min(fitting, max_patches), 1);
  };
  return {count(in.height, patch.height), count(in.width, patch.width)};
}

std::vector<ImageSize> tile_arrangements(int64_t max_tiles) {
  std::vector<ImageSize> all;
  for (int64_t first = 1; first <= max_tiles; ++first) {
    for (int64_t second = 1; first * second <= max_tiles; ++second) all.push_back({first, second});
  }
  return all;
}

TiledCanvas tiled_canvas(const ImageSize& in, int64_t tile, const std::vector<ImageSize>& arrangements) {
  const auto scale_of = [&](const ImageSize& tiles) {
    return std::min(quotient(tiles.height * tile, in.height), quotient(tiles.width * tile, in.width));
  };
  // The least scale that does not shrink the picture; if all do, the greatest. Of equals the smallest, then the first.
  TiledCanvas out;
  double best = 0;
  for (size_t i = 0; i < arrangements.size(); ++i) {
    const ImageSize& tiles = arrangements[i];
    const double scale = scale_of(tiles);
    const bool is_better = best >= 1 ? scale >= 1 && scale < best : scale > best;
    const bool is_smaller = scale == best && tiles.height * tiles.width < out.tiles.height * out.tiles.width;
    if (!is_better && !is_smaller) continue;
    best = scale;
    out.tiles = tiles;
    out.arrangement = static_cast<int32_t>(i);
  }
  const auto fitted = [&](int64_t side, int64_t most) { return std::max(tile, std::min(side, most)); };
  const ImageSize target{fitted(in.height, out.tiles.height * tile), fitted(in.width, out.tiles.width * tile)};
  const double scale_h = quotient(target.height, in.height), scale_w = quotient(target.width, in.width);
  const auto scaled = [](int64_t side, double scale, int64_t most) {
    const int64_t floored = whole(std::floor(static_cast<double>(side) * scale));
    return std::min(floored == 0 ? 1 : floored, most);
  };
  out.image = scale_w < scale_h ? ImageSize{scaled(in.height, scale_w, target.height), target.width}
                                : ImageSize{target.height, scaled(in.width, scale_h, target.width)};
  return out;
}

}  // namespace transept
