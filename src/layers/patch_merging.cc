#include "layers/patch_merging.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "ops/rows.h"

namespace transept {
namespace {

// 2 MiB of the rows that are merged.
constexpr int64_t kElementsAtOnce = 1 << 19;

// The rows that rows [begin, begin + rows.size() / 4) of the merged map are made of.
void fill_squares(const MapSize& map, int64_t begin, std::vector<int32_t>& rows) {
  const int64_t width = PatchMerging::merged(map).width;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t square = begin + static_cast<int64_t>(i) / 4, place = static_cast<int64_t>(i) % 4;
    const int64_t y = square / width * 2 + place % 2, x = square % width * 2 + place / 2;
    rows[i] = y < map.height && x < map.width ? static_cast<int32_t>(y * map.width + x) : kNoRow;
  }
}

}  // namespace

StatusOr<PatchMerging> PatchMerging::load(WeightMap& weights, const std::string& prefix, int64_t dim,
                                          const PackOptions& packing) {
  // The reference gives this norm no epsilon of the configuration.
  ASSIGN_OR_RETURN(Norm norm, Norm::load(weights, prefix + ".norm", 4 * dim, {}));
  const LinearSource source{.weight = prefix + ".reduction.weight", .bias = "", .out_features = 2 * dim};
  ASSIGN_OR_RETURN(Linear reduction, Linear::load(weights, {{source}, 4 * dim}, packing));
  return PatchMerging(std::move(norm), std::move(reduction));
}

void PatchMerging::forward(Context& context, const MapSize& map, const TensorView& x, const TensorView& y) const {
  const int64_t dim = x.dim(1), num_squares = merged(map).num_rows();
  CHECK(x.dim(0) == map.num_rows() && y.dim(0) == num_squares && 4 * dim == reduction_.in_features());
  const int64_t at_once = std::max<int64_t>(1, kElementsAtOnce / (4 * dim));
  std::vector<int32_t> rows;
  for (int64_t begin = 0; begin < num_squares; begin += at_once) {
    const Arena::Scope scope(context.arena);
    const int64_t end = std::min(begin + at_once, num_squares);
    rows.resize(static_cast<size_t>(4 * (end - begin)));
    fill_squares(map, begin, rows);
    const TensorView places = context.arena.tensor(DType::kFloat32, {4 * (end - begin), dim});
    gather_rows(context, x, rows, places);
    const TensorView squares(places.raw, DType::kFloat32, {end - begin, 4 * dim});
    norm_.forward(context, squares, squares);
    reduction_.forward(context, squares, {}, y.rows(begin, end));
  }
}

}  // namespace transept
