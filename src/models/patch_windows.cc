#include "models/patch_windows.h"

#include <algorithm>

#include "base/check.h"

namespace transept {

PatchWindows::PatchWindows(const PatchGridSize& grid, int64_t cell_side, int64_t window_side)
    : patches_a_cell_(cell_side * cell_side) {
  CHECK(cell_side > 0 && grid.rows % cell_side == 0 && grid.columns % cell_side == 0, "a grid of parts of cells");
  const PatchGridSize cells{grid.rows / cell_side, grid.columns / cell_side};
  const auto num_cells = static_cast<size_t>(cells.size());
  cells_.reserve(num_cells);
  starts_.push_back(0);
  if (window_side == 0) {
    for (size_t i = 0; i < num_cells; ++i) cells_.push_back(static_cast<int32_t>(i));
    lengths_.push_back(static_cast<int32_t>(grid.size()));
    starts_.push_back(lengths_.back());
  } else {
    for (int64_t top = 0; top < cells.rows; top += window_side) {
      for (int64_t left = 0; left < cells.columns; left += window_side) add_window(top, left, window_side, cells);
    }
  }
  places_.resize(num_cells);
  for (size_t i = 0; i < num_cells; ++i) places_[static_cast<size_t>(cells_[i])] = static_cast<int32_t>(i);
  place_patches(cell_side, cells.columns);
}

void PatchWindows::add_window(int64_t top, int64_t left, int64_t side, const PatchGridSize& cells) {
  const int64_t bottom = std::min(top + side, cells.rows), right = std::min(left + side, cells.columns);
  for (int64_t row = top; row < bottom; ++row) {
    for (int64_t column = left; column < right; ++column) {
      cells_.push_back(static_cast<int32_t>(row * cells.columns + column));
    }
  }
  lengths_.push_back(static_cast<int32_t>((bottom - top) * (right - left) * patches_a_cell_));
  starts_.push_back(starts_.back() + lengths_.back());
}

void PatchWindows::place_patches(int64_t cell_side, int64_t cell_columns) {
  const size_t num_patches = cells_.size() * static_cast<size_t>(patches_a_cell_);
  positions_.resize(2 * num_patches);
  size_t next = 0;
  for (const int32_t cell : cells_) {
    const int64_t top = cell / cell_columns * cell_side, left = cell % cell_columns * cell_side;
    for (int64_t i = 0; i < patches_a_cell_; ++i, ++next) {
      positions_[next] = static_cast<int32_t>(top + i / cell_side);
      positions_[num_patches + next] = static_cast<int32_t>(left + i % cell_side);
    }
  }
}

int32_t PatchWindows::longest() const { return lengths_.empty() ? 0 : *std::ranges::max_element(lengths_); }

}  // namespace transept
