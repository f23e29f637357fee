#include "layers/map_convolution.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "ops/rows.h"

namespace transept {
namespace {

// 2 MiB of the places that are multiplied.
constexpr int64_t kElementsAtOnce = 1 << 19;

}  // namespace

StatusOr<MapConvolution> MapConvolution::load(WeightMap& weights, const Options& options, const PackOptions& packing) {
  const int64_t kernel = options.shape.kernel, taps = kernel * kernel;
  const LinearSource source{.weight = options.prefix + ".weight",
                            .bias = options.prefix + ".bias",
                            .out_features = options.dim,
                            .kernel = taps,
                            .patch_height = kernel,
                            .patch_width = kernel};
  ASSIGN_OR_RETURN(Linear places,
                   Linear::load(weights, {{source}, taps * options.channels, LayerInputs::kConvolution}, packing));
  return MapConvolution(std::move(places), options);
}

int64_t MapConvolution::rows_at_once() const { return std::max<int64_t>(1, kElementsAtOnce / places_.in_features()); }

int64_t MapConvolution::place_of(const MapSize& map, int64_t row, int64_t tap) const {
  const int64_t width = std::max<int64_t>(1, shape_.output(map.width));  // an empty map has no row to ask for
  const int64_t y = row / width * shape_.stride - shape_.padding + tap / shape_.kernel;
  const int64_t x = row % width * shape_.stride - shape_.padding + tap % shape_.kernel;
  return y >= 0 && y < map.height && x >= 0 && x < map.width ? y * map.width + x : -1;
}

void MapConvolution::forward(Context& context, const MapSize& map, const TensorView& x, const TensorView& y) const {
  const int64_t taps = shape_.kernel * shape_.kernel, num_rows = y.dim(0);
  if (!context.dry_run) CHECK(x.dim(0) == map.num_rows() && num_rows == output(map).num_rows());
  std::vector<int32_t> rows;
  for (int64_t begin = 0; begin < num_rows; begin += rows_at_once()) {
    const Arena::Scope scope(context.arena);
    const int64_t end = std::min(begin + rows_at_once(), num_rows);
    rows.assign(static_cast<size_t>((end - begin) * taps), kNoRow);
    for (size_t i = 0; i < rows.size() && !context.dry_run; ++i) {
      const auto place = static_cast<int64_t>(i);
      rows[i] = static_cast<int32_t>(place_of(map, begin + place / taps, place % taps));
    }
    const TensorView places = context.arena.tensor(DType::kFloat32, {(end - begin) * taps, channels_});
    gather_rows(context, x, rows, places);
    const TensorView windows(places.raw, DType::kFloat32, {end - begin, taps * channels_});
    places_.forward(context, windows, {}, y.rows(begin, end));
  }
}

void MapConvolution::fill_row(const PictureView& picture, int64_t row, std::span<float> out) const {
  const int64_t plane = picture.height * picture.width;
  for (int64_t tap = 0; tap < shape_.kernel * shape_.kernel; ++tap) {
    const int64_t place = place_of({picture.height, picture.width}, row, tap);
    for (int64_t channel = 0; channel < channels_; ++channel) {
      out[static_cast<size_t>(tap * channels_ + channel)] =
          place < 0 ? 0.0f : picture.values[static_cast<size_t>(channel * plane + place)];
    }
  }
}

void MapConvolution::forward(Context& context, const PictureView& picture, const TensorView& y) const {
  const int64_t num_rows = y.dim(0);
  if (!context.dry_run) {
    CHECK(std::ssize(picture.values) == channels_ * picture.height * picture.width &&
          num_rows == output({picture.height, picture.width}).num_rows());
  }
  for (int64_t begin = 0; begin < num_rows; begin += rows_at_once()) {
    const Arena::Scope scope(context.arena);
    const int64_t end = std::min(begin + rows_at_once(), num_rows);
    const TensorView windows = context.arena.tensor(DType::kFloat32, {end - begin, places_.in_features()});
    const auto make_row = [&](int64_t i, std::span<float> row) { fill_row(picture, begin + i, row); };
    write_rows(context, make_row, windows);
    places_.forward(context, windows, {}, y.rows(begin, end));
  }
}

}  // namespace transept
