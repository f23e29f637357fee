// torch's values (2.13, interpolate(mode="bilinear", antialias=True) of make_picture(7, 5, 1) / 255 - 0.5); the
// definition in double precision; refusals.
#include "media/resize_float.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "media/resize.h"
#include "media/resize_testing.h"

namespace transept {
namespace {

using testing::make_picture;

LevelValues centred() {
  LevelValues values;
  for (size_t level = 0; level < values.size(); ++level) values[level] = static_cast<float>(level) / 255 - 0.5f;
  return values;
}

std::vector<float> resized(const RgbImage& image, int32_t width, int32_t height) {
  std::vector<float> out(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  const Status status = resize_values(image, centred(), width, height, out);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

// [in_size] weights of one output, in double precision.
std::vector<double> obvious_weights(int32_t in_size, int32_t out_size, int32_t output) {
  const double scale = static_cast<double>(in_size) / out_size, stretch = std::max(scale, 1.0);
  const double center = (output + 0.5) * scale;
  std::vector<double> weights;
  double sum = 0;
  for (int32_t i = 0; i < in_size; ++i) {
    weights.push_back(std::max(0.0, 1 - std::abs((i + 0.5 - center) / stretch)));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

double obvious_value(const RgbImage& image, const std::vector<double>& columns, const std::vector<double>& rows,
                     size_t channel) {
  double sum = 0;
  for (size_t y = 0; y < rows.size(); ++y) {
    for (size_t x = 0; x < columns.size(); ++x)
      sum += rows[y] * columns[x] * (image.pixels[(y * columns.size() + x) * 3 + channel] / 255.0 - 0.5);
  }
  return sum;
}

TEST(ResizeValues, AreThoseOfTorch) {
  const RgbImage image = make_picture(7, 5, 1);
  const std::vector<float> smaller = resized(image, 4, 3), larger = resized(image, 9, 6);
  const float expected_smaller[] = {-0.41935441f, -0.4215686f,  -0.42450312f,  -0.3491877f, -0.29294121f, -0.24554622f,
                                    0.10161344f,  0.099394955f, -0.093904756f, 0.22743765f, 0.30032012f,  0.042430293f};
  const float expected_larger[] = {-0.5f,        -0.5f,        -0.5f,        -0.47124183f, -0.44509804f, -0.42418301f,
                                   -0.43594772f, -0.38104576f, -0.33572987f, -0.40021786f, -0.31699347f, -0.24640521f};
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(smaller[i], expected_smaller[i], 3e-7) << i;
    EXPECT_NEAR(larger[i], expected_larger[i], 3e-7) << i;
  }
  double sum = 0;
  for (const float value : smaller) sum += value;
  EXPECT_NEAR(sum, -2.50948599, 1e-6);
  sum = 0;
  for (const float value : larger) sum += value;
  EXPECT_NEAR(sum, -11.81673859, 5e-6);
}

// The reference's positions are of single precision, and so are ours.
TEST(ResizeValues, AreTheDefinition) {
  std::mt19937 random(3);
  const auto draw = [&](int32_t most) { return static_cast<int32_t>(1 + random() % static_cast<uint32_t>(most)); };
  for (int round = 0; round < 60; ++round) {
    const RgbImage image = make_picture(draw(30), draw(30), static_cast<uint32_t>(round));
    // A side that keeps its length, now and then.
    const int32_t width = round % 5 == 0 ? image.width : draw(30), height = round % 7 == 0 ? image.height : draw(30);
    const std::vector<float> got = resized(image, width, height);
    for (int32_t y = 0; y < height; ++y) {
      const std::vector<double> rows = obvious_weights(image.height, height, y);
      for (int32_t x = 0; x < width; ++x) {
        const std::vector<double> columns = obvious_weights(image.width, width, x);
        for (size_t c = 0; c < 3; ++c) {
          ASSERT_NEAR(got[static_cast<size_t>(y * width + x) * 3 + c], obvious_value(image, columns, rows, c), 1e-5)
              << image.width << " x " << image.height << " to " << width << " x " << height;
        }
      }
    }
  }
}

TEST(ResizeValues, RefuseSides) {
  const RgbImage image = make_picture(2, 2, 1);
  std::vector<float> out;
  for (const auto& [width, height] :
       {std::pair(0, 2), std::pair(2, 0), std::pair(kMaxResizeSide + 1, 1), std::pair(1, -1)}) {
    EXPECT_EQ(resize_values(image, centred(), width, height, out).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(resize_values({}, centred(), 1, 1, out).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace transept
