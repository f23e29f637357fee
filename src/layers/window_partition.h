// The windows that a map of rows is divided into, and the rows of the map that each of them holds (Liu et al.: Swin
// Transformer, 2021; transformers' window_partition, SwinLayer.get_attn_mask and set_shift_and_window_size).
//
// A map is filled up at its right and at its bottom to whole windows. A shifted partition moves every window by `shift`
// rows and columns; what it moves past the end wraps around to the beginning. So the windows of the last row and of the
// last column hold parts of the map that are no neighbours: regions, which do not attend to each other.
//
// A value: immutable, thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace transept {

// Rows of a picture in order, one behind another.
struct MapSize {
  int64_t height = 0, width = 0;

  int64_t num_rows() const { return height * width; }
  bool operator==(const MapSize&) const = default;
};

// By the regions that a window has: one, or two side by side, or two above each other, or four.
enum class WindowKind : uint8_t { kInner, kRight, kBottom, kCorner };
inline constexpr WindowKind kWindowKinds[] = {WindowKind::kInner, WindowKind::kRight, WindowKind::kBottom,
                                              WindowKind::kCorner};

// What becomes of a map with a side of at most a window's.
enum class SmallMaps : uint8_t {
  kShrinkWindows,  // it is divided into windows of its smaller side, which are not shifted (Swin)
  kFillUp,         // it is filled up to whole windows, as larger maps are (DaViT)
};

class WindowPartition final {
 public:
  // REQUIRES: a map that is not empty; side > 0; 0 <= shift < side.
  WindowPartition(const MapSize& map, int64_t side, int64_t shift, SmallMaps small_maps = SmallMaps::kShrinkWindows);

  int64_t side() const { return side_; }  // of a window
  int64_t shift() const { return shift_; }
  int64_t window_rows() const { return side_ * side_; }

  // Without a shift, all windows are kInner.
  int64_t num_windows(WindowKind kind) const;

  // Writes the rows of the map that windows [begin, begin + rows.size() / window_rows()) of a kind hold, each window
  // row by row; kNoRow (ops/rows.h) outside of the map. Returns whether there is a kNoRow.
  bool fill_rows(WindowKind kind, int64_t begin, std::span<int32_t> rows) const;

  // Whether rows i and j of such a window are of one region.
  bool is_one_region(WindowKind kind, int64_t i, int64_t j) const;

 private:
  // The windows of a kind: rows and columns of windows.
  struct Block {
    int64_t top = 0, left = 0, height = 0, width = 0;
  };
  Block block_of(WindowKind kind) const;

  MapSize map_;
  int64_t side_, shift_;
  int64_t down_, across_;  // windows
};

}  // namespace transept
