#include "layers/window_partition.h"

#include "base/check.h"
#include "base/checked_math.h"
#include "ops/rows.h"

namespace transept {
namespace {

bool is_last_row(WindowKind kind) { return kind == WindowKind::kBottom || kind == WindowKind::kCorner; }
bool is_last_column(WindowKind kind) { return kind == WindowKind::kRight || kind == WindowKind::kCorner; }

}  // namespace

WindowPartition::WindowPartition(const MapSize& map, int64_t side, int64_t shift, SmallMaps small_maps) : map_(map) {
  CHECK(map.height > 0 && map.width > 0 && side > 0 && 0 <= shift && shift < side);
  const int64_t smaller = std::min(map.height, map.width);
  const bool shrinks = small_maps == SmallMaps::kShrinkWindows && smaller <= side;
  side_ = shrinks ? smaller : side;
  shift_ = shrinks ? 0 : shift;
  down_ = ceil_div(map.height, side_);
  across_ = ceil_div(map.width, side_);
}

WindowPartition::Block WindowPartition::block_of(WindowKind kind) const {
  if (shift_ == 0) return kind == WindowKind::kInner ? Block{0, 0, down_, across_} : Block{};
  Block block{0, 0, down_ - 1, across_ - 1};
  if (is_last_row(kind)) block.top = down_ - 1, block.height = 1;
  if (is_last_column(kind)) block.left = across_ - 1, block.width = 1;
  return block;
}

int64_t WindowPartition::num_windows(WindowKind kind) const {
  const Block block = block_of(kind);
  return block.height * block.width;
}

bool WindowPartition::fill_rows(WindowKind kind, int64_t begin, std::span<int32_t> rows) const {
  const Block block = block_of(kind);
  const int64_t end = begin + static_cast<int64_t>(rows.size()) / window_rows();
  CHECK(block.width > 0 && end <= block.height * block.width, "no windows of this kind");
  const int64_t height = down_ * side_, width = across_ * side_;
  bool any_is_missing = false;
  size_t place = 0;
  for (int64_t window = begin; window < end; ++window) {
    const int64_t top = (block.top + window / block.width) * side_ + shift_;
    const int64_t left = (block.left + window % block.width) * side_ + shift_;
    for (int64_t i = 0; i < window_rows(); ++i) {
      const int64_t y = (top + i / side_) % height, x = (left + i % side_) % width;
      const bool is_there = y < map_.height && x < map_.width;
      any_is_missing |= !is_there;
      rows[place++] = is_there ? static_cast<int32_t>(y * map_.width + x) : kNoRow;
    }
  }
  return any_is_missing;
}

bool WindowPartition::is_one_region(WindowKind kind, int64_t i, int64_t j) const {
  const int64_t border = side_ - shift_;  // beyond it, what was wrapped around
  const bool divides_rows = is_last_row(kind) && (i / side_ < border) != (j / side_ < border);
  const bool divides_columns = is_last_column(kind) && (i % side_ < border) != (j % side_ < border);
  return !divides_rows && !divides_columns;
}

}  // namespace transept
