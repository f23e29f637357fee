// The order in which Qwen2.5-VL's tower has the patches of a picture: window by window, so that a window is a sequence
// of the packed form. A cell is a square of patches that are merged to one row behind the tower: patches of a cell stay
// together. Windows are squares of cells, smaller at the right and at the bottom. Source: transformers,
// vision_utils.py, get_vision_window_index, get_vision_position_ids. A value: immutable, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace transept {

struct PatchGridSize {
  int64_t rows = 0, columns = 0;  // of patches: multiples of a cell's side

  int64_t size() const { return rows * columns; }
};

class PatchWindows final {
 public:
  // Features have the patches cell by cell, in rows of cells, and row by row within a cell. window_side: in cells; 0:
  // one window, in which all cells are in the order of the features. REQUIRES: sides of the grid that cells divide.
  PatchWindows(const PatchGridSize& grid, int64_t cell_side, int64_t window_side);

  // [cells]: the place among the features' cells of each cell in the order of the windows; and the inverse.
  std::span<const int32_t> cells() const { return cells_; }
  std::span<const int32_t> places() const { return places_; }
  // [2, patches]: row and column of each patch, in the order of the windows.
  std::span<const int32_t> positions() const { return positions_; }
  // Of windows, in patches: [windows + 1] where each begins, [windows] how many it has.
  std::span<const int32_t> starts() const { return starts_; }
  std::span<const int32_t> lengths() const { return lengths_; }
  int32_t longest() const;

  // The patch of the features that is the i-th in the order of the windows.
  int64_t patch(int64_t i) const {
    return cells_[static_cast<size_t>(i / patches_a_cell_)] * patches_a_cell_ + i % patches_a_cell_;
  }

 private:
  void add_window(int64_t top, int64_t left, int64_t side, const PatchGridSize& cells);
  void place_patches(int64_t cell_side, int64_t cell_columns);

  int64_t patches_a_cell_;
  std::vector<int32_t> cells_, places_, positions_, starts_, lengths_;
};

}  // namespace transept
