// Proves that windows hold the rows that padding, rolling and cutting a map of numbers gives them, and that regions are
// those of the reference's mask, both written out over the whole map.
#include "layers/window_partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "ops/rows.h"

namespace transept {
namespace {

using ::testing::ElementsAreArray;

// The windows by their definition: a map of row numbers that is filled up, rolled, and cut. And the map of nine regions
// that the reference makes of its mask.
struct Cut {
  std::vector<std::vector<int32_t>> rows;  // of each window, window by window along the rows of windows
  std::vector<std::vector<int>> regions;
  int64_t across = 0;
};

Cut cut(const MapSize& map, int64_t side, int64_t shift) {
  const int64_t smaller = std::min(map.height, map.width);
  if (smaller <= side) side = smaller, shift = 0;
  const int64_t height = (map.height + side - 1) / side * side, width = (map.width + side - 1) / side * side;
  const auto region = [&](int64_t i, int64_t length) {
    return shift == 0 ? 0 : i < length - side ? 0 : i < length - shift ? 1 : 2;
  };
  std::vector<std::vector<int32_t>> filled(static_cast<size_t>(height),
                                           std::vector<int32_t>(static_cast<size_t>(width), kNoRow));
  for (int64_t y = 0; y < map.height; ++y) {
    for (int64_t x = 0; x < map.width; ++x) {
      // Rolled by -shift.
      filled[static_cast<size_t>((y - shift + height) % height)][static_cast<size_t>((x - shift + width) % width)] =
          static_cast<int32_t>(y * map.width + x);
    }
  }
  Cut result;
  result.across = width / side;
  for (int64_t top = 0; top < height; top += side) {
    for (int64_t left = 0; left < width; left += side) {
      std::vector<int32_t>& rows = result.rows.emplace_back();
      std::vector<int>& regions = result.regions.emplace_back();
      for (int64_t y = top; y < top + side; ++y) {
        for (int64_t x = left; x < left + side; ++x) {
          rows.push_back(filled[static_cast<size_t>(y)][static_cast<size_t>(x)]);
          regions.push_back(3 * region(y, height) + region(x, width));
        }
      }
    }
  }
  return result;
}

// regions: of each row of a window of this kind.
void expect_regions(const WindowPartition& windows, WindowKind kind, const std::vector<int>& regions) {
  for (size_t a = 0; a < regions.size(); ++a) {
    for (size_t b = 0; b < regions.size(); ++b) {
      ASSERT_EQ(windows.is_one_region(kind, static_cast<int64_t>(a), static_cast<int64_t>(b)),
                regions[a] == regions[b]);
    }
  }
}

class WindowPartitionTest : public ::testing::TestWithParam<std::tuple<int64_t, int64_t>> {};

TEST_P(WindowPartitionTest, IsThatOfAMapThatIsFilledUpRolledAndCut) {
  const auto [side, shift] = GetParam();
  for (int64_t height = 1; height <= 11; ++height) {
    for (int64_t width = 1; width <= 11; ++width) {
      const MapSize map{height, width};
      const WindowPartition windows(map, side, shift);
      Cut expected = cut(map, side, shift);
      int64_t num_windows = 0;
      for (const WindowKind kind : kWindowKinds) {
        for (int64_t i = 0; i < windows.num_windows(kind); ++i, ++num_windows) {
          std::vector<int32_t> rows(static_cast<size_t>(windows.window_rows()), 12345);
          const bool any_is_missing = windows.fill_rows(kind, i, rows);
          EXPECT_EQ(any_is_missing, std::find(rows.begin(), rows.end(), kNoRow) != rows.end());
          const auto found = std::find(expected.rows.begin(), expected.rows.end(), rows);
          ASSERT_NE(found, expected.rows.end()) << height << " x " << width;
          expect_regions(windows, kind, expected.regions[static_cast<size_t>(found - expected.rows.begin())]);
          found->clear();  // no window twice
        }
      }
      EXPECT_EQ(num_windows, std::ssize(expected.rows));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sides, WindowPartitionTest,
                         ::testing::Values(std::tuple(1, 0), std::tuple(2, 0), std::tuple(2, 1), std::tuple(3, 1),
                                           std::tuple(4, 0), std::tuple(4, 2), std::tuple(5, 2), std::tuple(5, 4)));

TEST(WindowPartition, SeveralWindowsLieOneBehindAnother) {
  const WindowPartition windows({9, 9}, 3, 1);
  ASSERT_EQ(windows.num_windows(WindowKind::kInner), 4);
  std::vector<int32_t> all(27), one(9);
  windows.fill_rows(WindowKind::kInner, 1, all);
  for (int64_t i = 0; i < 3; ++i) {
    windows.fill_rows(WindowKind::kInner, 1 + i, one);
    EXPECT_THAT(std::vector<int32_t>(all.begin() + 9 * i, all.begin() + 9 * (i + 1)), ElementsAreArray(one));
  }
}

}  // namespace
}  // namespace transept
