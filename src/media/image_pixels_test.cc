// Orientation of rows, sizes that are checked, and alpha over white.
#include "media/image_pixels.h"

#include <gmock/gmock.h>

#include <array>

namespace transept {
namespace {

using ::testing::HasSubstr;

// Where EXIF 2.32 says that row 0 and column 0 of the file are, as the source of a pixel of the result.
std::array<int32_t, 2> source_of(int32_t orientation, int32_t x, int32_t y, int32_t width, int32_t height) {
  switch (orientation) {
    case 2: return {width - 1 - x, y};
    case 3: return {width - 1 - x, height - 1 - y};
    case 4: return {x, height - 1 - y};
    case 5: return {y, x};
    case 6: return {y, height - 1 - x};
    case 7: return {width - 1 - y, height - 1 - x};
    case 8: return {width - 1 - y, x};
    default: return {x, y};
  }
}

std::array<uint8_t, 3> pixel(int32_t x, int32_t y) {
  return {static_cast<uint8_t>(x), static_cast<uint8_t>(y), static_cast<uint8_t>(x * 7 + y * 13)};
}

void expect_oriented(const RgbImage& image, const ImageInfo& info) {
  ASSERT_EQ(image.width, info.oriented_width());
  ASSERT_EQ(image.height, info.oriented_height());
  for (int32_t y = 0; y < image.height; ++y) {
    for (int32_t x = 0; x < image.width; ++x) {
      const auto [from_x, from_y] = source_of(info.orientation, x, y, info.width, info.height);
      const size_t at = static_cast<size_t>(y) * static_cast<size_t>(image.width) + static_cast<size_t>(x);
      const uint8_t* found = &image.pixels[3 * at];
      ASSERT_EQ((std::array{found[0], found[1], found[2]}), pixel(from_x, from_y)) << x << ", " << y;
    }
  }
}

void fill_row(OrientedRows& rows, int32_t y, int32_t width) {
  for (int32_t x = 0; x < width; ++x) {
    const auto rgb = pixel(x, y);
    std::copy(rgb.begin(), rgb.end(), rows.row(y) + 3 * x);
  }
}

void expect_any_height(int32_t orientation, int32_t width) {
  for (const int32_t height : {1, 5, 31, 32, 33, 64, 100}) {
    SCOPED_TRACE(::testing::Message() << orientation << ": " << width << " x " << height);
    const ImageInfo info{.width = width, .height = height, .orientation = orientation};
    OrientedRows rows(info);
    for (int32_t y = 0; y < height; ++y) fill_row(rows, y, width);
    ASSERT_NO_FATAL_FAILURE(expect_oriented(rows.finish(), info));
  }
}

TEST(OrientedRows, EveryOrientationAndGroup) {
  for (int32_t orientation = 1; orientation <= 8; ++orientation) {
    for (const int32_t width : {1, 2, 47}) expect_any_height(orientation, width);
  }
}

// Rows of one group are open together, in any order.
TEST(OrientedRows, GroupsMayBeFilledBackwards) {
  for (const int32_t orientation : {1, 3, 6}) {
    const ImageInfo info{.width = 5, .height = 70, .orientation = orientation};
    OrientedRows rows(info);
    for (int32_t group = 0; group < info.height; group += OrientedRows::kGroup) {
      for (int32_t y = std::min(group + OrientedRows::kGroup, info.height) - 1; y >= group; --y) {
        fill_row(rows, y, info.width);
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_oriented(rows.finish(), info));
  }
}

TEST(OrientedRows, PixelsOfPasses) {
  for (int32_t orientation = 1; orientation <= 8; ++orientation) {
    const ImageInfo info{.width = 11, .height = 40, .orientation = orientation};
    OrientedRows rows(info);
    for (const int32_t first : {1, 0}) {
      for (int32_t y = 0; y < info.height; ++y) {
        std::vector<uint8_t> rgb;
        for (int32_t x = first; x < info.width; x += 2) {
          const auto one = pixel(x, y);
          rgb.insert(rgb.end(), one.begin(), one.end());
        }
        rows.put(y, first, 2, static_cast<int32_t>(rgb.size() / 3), rgb.data());
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_oriented(rows.finish(), info));
  }
}

// Image.alpha_composite in exact arithmetic: value * alpha + 255 * (255 - alpha), divided by 255 and rounded.
TEST(OnWhite, EveryValueAndAlpha) {
  for (uint32_t alpha = 0; alpha < 256; ++alpha) {
    for (uint32_t value = 0; value < 256; ++value) {
      const uint32_t sum = value * alpha + 255 * (255 - alpha);
      ASSERT_EQ(on_white(value, alpha), (2 * sum + 255) / 510) << value << ", " << alpha;
    }
  }
}

TEST(CheckImageSize, Limits) {
  const ImageLimits limits{.max_pixels = 1000, .max_side = 200};
  EXPECT_TRUE(check_image_size(200, 5, limits).ok());
  EXPECT_TRUE(check_image_size(5, 200, limits).ok());
  EXPECT_TRUE(check_image_size(1, 1, limits).ok());
  for (const auto& [width, height] : {std::pair(0, 5), std::pair(5, 0), std::pair(0, 0), std::pair(-1, 5)}) {
    EXPECT_THAT(error_message(check_image_size(width, height, limits)), HasSubstr("a picture without pixels"));
  }
  EXPECT_EQ(error_message(check_image_size(201, 1, limits)), "is 201 x 1; a side has at most 200 pixels");
  EXPECT_EQ(error_message(check_image_size(1, 4294967295, limits)), "is 1 x 4294967295; a side has at most 200 pixels");
  EXPECT_EQ(error_message(check_image_size(143, 7, limits)), "is 143 x 7, 1001 pixels; the limit is 1000");
}

// Whatever the limits: sizes that follow fit.
TEST(CheckImageSize, NoOverflow) {
  const ImageLimits none{.max_pixels = INT64_MAX, .max_side = INT32_MAX};
  EXPECT_FALSE(check_image_size(INT32_MAX, INT32_MAX, none).ok());
  EXPECT_TRUE(check_image_size(INT32_MAX, 1 << 20, none).ok());
}

}  // namespace
}  // namespace transept
