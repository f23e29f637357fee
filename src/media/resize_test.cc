// Pillow's pixels for small pictures (tools/make_resize_fixtures.py); every level, and levels in software as wide as
// those that this processor lacks, against the definition; refusals. tests/images/resize_differential.py compares
// thousands of sizes with Pillow itself.
#include "media/resize.h"

#include <gmock/gmock.h>

#include <random>

#include "base/hex.h"
#include "base/sanitized_testing.h"
#include "media/media_testing.h"
#include "media/resize_kernel.h"
#include "media/resize_passes.h"
#include "media/resize_testing.h"
#include "media/resize_weights.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::make_picture;
using testing::obvious_resize;
using testing::SoftwareResizeLevel;

constexpr ResizeFilter kFilters[] = {ResizeFilter::kLanczos, ResizeFilter::kBilinear, ResizeFilter::kBicubic,
                                     ResizeFilter::kBox, ResizeFilter::kHamming};

template <int kBytes>
constexpr ResizeKernels kSoftware = {ResizeKernel<SoftwareResizeLevel<kBytes>>::horizontal,
                                     ResizeKernel<SoftwareResizeLevel<kBytes>>::vertical};

struct NamedKernels {
  std::string name;
  const ResizeKernels& kernels;
};

std::vector<NamedKernels> all_kernels() {
  std::vector<NamedKernels> all = {{"software, 16 bytes", kSoftware<16>},
                                   {"software, 32 bytes", kSoftware<32>},
                                   {"software, 64 bytes", kSoftware<64>}};
  for (const Isa isa : present_isas()) {
    if (isa <= Isa::kAvx512) all.push_back({std::string(isa_name(isa)), resize_kernels(isa)});
  }
  return all;
}

// A JSON list of numbers.
std::vector<double> numbers(const Json& line, std::string_view key) {
  std::vector<double> out;
  const Json* list = line.find(key);
  if (list == nullptr || !list->is_array()) return out;
  for (const Json& number : list->as_array()) out.push_back(number.as_double());
  return out;
}

ResizeFilter filter_named(std::string_view name) {
  for (int i = 0; i < kNumResizeFilters; ++i) {
    if (resize_filter_name(static_cast<ResizeFilter>(i)) == name) return static_cast<ResizeFilter>(i);
  }
  ADD_FAILURE() << name;
  return ResizeFilter::kNearest;
}

RgbImage answer(const Json& line, const RgbImage& picture, Isa isa) {
  if (line.find("reduce") != nullptr) {
    const std::vector<double> factors = numbers(line, "reduce");
    return reduce(picture, static_cast<int32_t>(factors[0]), static_cast<int32_t>(factors[1]));
  }
  ResizeOptions options;
  options.filter = filter_named(line.find("filter")->as_string());
  if (line.find("gap")->is_number()) options.reducing_gap = line.find("gap")->as_double();
  const std::vector<double> box = numbers(line, "box"), size = numbers(line, "size");
  if (!box.empty()) options.box = {box[0], box[1], box[2], box[3]};
  StatusOr<RgbImage> resized =
      resize(picture, static_cast<int32_t>(size[0]), static_cast<int32_t>(size[1]), options, isa);
  EXPECT_TRUE(resized.ok()) << resized.status();
  return resized.ok() ? std::move(resized).value() : RgbImage();
}

TEST(Resize, GivesThePixelsOfPillow) {
  const std::vector<Json> lines = read_jsonl(fixture_path("resize.jsonl"));
  ASSERT_GE(lines.size(), 100u);
  for (const Json& line : lines) {
    const std::vector<double> picture = numbers(line, "picture");
    const RgbImage image = make_picture(static_cast<int32_t>(picture[0]), static_cast<int32_t>(picture[1]),
                                        static_cast<uint32_t>(picture[2]));
    for (const Isa isa : present_isas()) {
      const RgbImage got = answer(line, image, isa);
      ASSERT_EQ(hex_text(std::as_bytes(std::span(got.pixels))), line.find("rgb")->as_string())
          << isa_name(isa) << ": " << line.dump();
    }
  }
}

TEST(Resize, EveryLevelIsTheDefinition) {
  std::mt19937 random(7);
  const auto draw = [&](int32_t most) { return static_cast<int32_t>(1 + random() % static_cast<uint32_t>(most)); };
  const std::vector<NamedKernels> all = all_kernels();
  for (int round = 0; round < (kSanitized ? 15 : 60); ++round) {
    // Widths around those of vectors, windows of one input and of many.
    const RgbImage image =
        make_picture(draw(round % 3 == 0 ? 300 : 40), draw(round % 5 == 0 ? 300 : 30), static_cast<uint32_t>(round));
    if (image.height > 100 * image.width) continue;
    const int32_t width = draw(60), height = draw(20);
    for (const ResizeFilter filter : kFilters) {
      const RgbImage expected = obvious_resize(image, width, height, filter);
      const FloatBox whole{0, 0, static_cast<float>(image.width), static_cast<float>(image.height)};
      for (const NamedKernels& level : all) {
        ASSERT_EQ(resample(image, width, height, filter, whole, level.kernels), expected)
            << level.name << ": " << image.width << " x " << image.height << " to " << width << " x " << height << ", "
            << resize_filter_name(filter);
      }
    }
  }
}

// A kernel's reading behind a row's end stays in the copies of the last rows: none of what stands there counts. The
// sanitizers see to it that nothing behind the picture is read.
TEST(Resize, LastRowsOfNarrowPictures) {
  for (const int32_t width : {1, 2, 3, 5, 8}) {
    for (const int32_t height : {1, 2, 3, 4, 5, 11}) {
      const RgbImage image = make_picture(width, height, 3);
      const RgbImage expected = obvious_resize(image, 7, height, ResizeFilter::kLanczos);
      for (const NamedKernels& level : all_kernels()) {
        const FloatBox whole{0, 0, static_cast<float>(width), static_cast<float>(height)};
        ASSERT_EQ(resample(image, 7, height, ResizeFilter::kLanczos, whole, level.kernels), expected)
            << level.name << ": " << width << " x " << height;
      }
    }
  }
}

// The result is made in strips of columns, over bands of rows: joints of both are seen here.
TEST(Resize, StripsAndBandsJoin) {
  const RgbImage image = make_picture(90, 2900, 4);  // 2,904 rows in a band: strips of 64 columns
  const RgbImage expected = obvious_resize(image, 200, 1, ResizeFilter::kBox);
  const FloatBox whole{0, 0, 90, 2900};
  for (const NamedKernels& level : all_kernels()) {
    ASSERT_EQ(resample(image, 200, 1, ResizeFilter::kBox, whole, level.kernels), expected) << level.name;
  }
}

TEST(Resize, WeightsHaveBothParts) {
  const ResizeWeights weights(ResizeFilter::kLanczos, 10, 0, 10, 4);
  const ResizeAxis& axis = weights.axis();
  for (int32_t i = 0; i < 4; ++i) {
    int64_t sum = 0;
    bool is_negative = false;
    for (int32_t tap = 0; tap < axis.stride; ++tap) {
      const auto weight = static_cast<int32_t>(resize_weight(axis, i, tap));
      EXPECT_TRUE(tap < axis.count[i] || weight == 0);
      is_negative |= weight < 0;
      sum += weight;
    }
    EXPECT_NEAR(static_cast<double>(sum), 1 << 22, 10);
    EXPECT_TRUE(is_negative);
  }
}

TEST(Resize, RefusesByName) {
  const RgbImage image = make_picture(4, 3, 1);
  const auto refused = [&](int32_t width, int32_t height, const ResizeOptions& options, std::string_view field) {
    const auto result = resize(image, width, height, options, Isa::kGeneric);
    ASSERT_FALSE(result.ok()) << field;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(error_param(result.status()), field) << result.status();
  };
  const double nan = std::nan("");
  refused(0, 3, {}, "width");
  refused(-4, 3, {}, "width");
  refused(kMaxResizeSide + 1, 3, {}, "width");
  refused(4, 0, {}, "height");
  refused(4, kMaxResizeSide + 1, {}, "height");
  for (const double gap : {0.99, -1.0, 0.0, nan}) refused(2, 2, {.reducing_gap = gap}, "reducing_gap");
  for (const ResizeBox& box : {ResizeBox{-0.1, 0, 4, 3}, ResizeBox{0, -1, 4, 3}, ResizeBox{0, 0, 4.01, 3},
                               ResizeBox{0, 0, 4, 4}, ResizeBox{1, 1, 1, 2}, ResizeBox{2, 1, 1, 2},
                               ResizeBox{0, 2, 4, 1}, ResizeBox{nan, 0, 4, 3}, ResizeBox{0, 0, nan, 3}}) {
    refused(2, 2, {.box = box}, "box");
  }
  const RgbImage empty;
  const auto result = resize(empty, 2, 2, {}, Isa::kGeneric);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(error_message(result.status()), HasSubstr("1 to 65535"));
}

TEST(Resize, BoxesMayTouchTheEdges) {
  const RgbImage image = make_picture(9, 7, 2);
  const auto of = [&](const std::optional<ResizeBox>& box) { return resize(image, 4, 3, {.box = box}, detect_isa()); };
  const auto whole = of({});
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto boxed = of(ResizeBox{0, 0, 9, 7});
  ASSERT_TRUE(boxed.ok()) << boxed.status();
  EXPECT_EQ(*boxed, *whole);
  for (const ResizeBox& box :
       {ResizeBox{0, 1, 8, 6}, ResizeBox{1, 0, 8, 6}, ResizeBox{1, 1, 9, 6}, ResizeBox{1, 1, 8, 7}}) {
    const auto part = of(box);
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_NE(*part, *whole);
  }
}

TEST(Resize, LargestSidesAreTaken) {
  const RgbImage line = make_picture(3000, 1, 2);
  for (const NamedKernels& level : all_kernels()) {
    const FloatBox whole{0, 0, 3000, 1};
    const RgbImage wide = resample(line, kMaxResizeSide, 1, ResizeFilter::kBilinear, whole, level.kernels);
    EXPECT_EQ(wide.pixels.size(), size_t{kMaxResizeSide} * 3);
  }
  const auto tall = resize(line, 1, kMaxResizeSide, {.filter = ResizeFilter::kBox}, detect_isa());
  ASSERT_TRUE(tall.ok()) << tall.status();
  EXPECT_EQ(tall->pixels.size(), size_t{kMaxResizeSide} * 3);
}

// Beyond 2^24 pixels, 32 bits would not hold the sum.
TEST(Resize, ReduceOfManyPixels) {
  RgbImage image{4096, 4097, {}};
  image.pixels.assign(size_t{4096} * 4097 * 3, 200);
  const RgbImage one = reduce(image, 4096, 4097);
  EXPECT_EQ(one.pixels, (std::vector<uint8_t>{200, 200, 200}));
  const RgbImage two = reduce(image, 4096, 4096);
  EXPECT_EQ(two.height, 2);
  EXPECT_EQ(two.pixels, std::vector<uint8_t>(6, 200));
}

}  // namespace
}  // namespace transept
