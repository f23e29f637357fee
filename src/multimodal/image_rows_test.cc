#include "multimodal/image_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

StatusOr<std::unique_ptr<ImageRows>> rows_of(const std::string& tower) {
  ModelConfig config;
  config.path = "dir";
  config.raw = Json::parse(str_cat(R"({"encoder": )", tower, "}")).value();
  return make_composite_image_rows(config);
}

ImageRowCounts count(const std::string& tower, int64_t height, int64_t width) {
  const auto rows = rows_of(tower);
  EXPECT_TRUE(rows.ok()) << rows.status();
  const int64_t shape[] = {3, height, width};
  const auto counts = rows.ok() ? (*rows)->count(shape, {}) : StatusOr<ImageRowCounts>(rows.status());
  EXPECT_TRUE(counts.ok()) << counts.status();
  return counts.ok() ? *counts : ImageRowCounts{};
}

TEST(ImageRows, ViTHasATokenMoreThanPatches) {
  EXPECT_EQ(count(R"({"model_type": "vit", "image_size": 384, "patch_size": 16})", 384, 384).num_positions, 577);
  const ImageRowCounts rest = count(R"({"model_type": "vit", "image_size": [50, 33], "patch_size": [8, 4]})", 50, 33);
  EXPECT_EQ(rest.num_positions, 6 * 8 + 1);  // what is left at the edges is no patch
  EXPECT_EQ(rest.num_rows, rest.num_positions);
  EXPECT_EQ(count(R"({"model_type": "vit"})", 224, 224).num_positions, 197);  // ViTConfig's defaults
}

TEST(ImageRows, DeiTHasTwo) {
  EXPECT_EQ(count(R"({"model_type": "deit", "image_size": 384, "patch_size": 16})", 384, 384).num_positions, 578);
}

// Sides are rounded up to patches, and to pairs of them before each merging.
TEST(ImageRows, SwinHalvesBothSidesBetweenStages) {
  const std::string base = R"({"model_type": "donut-swin", "patch_size": 4, "depths": [2, 2, 14, 2]})";
  EXPECT_EQ(count(base, 2560, 1920).num_positions, 4800);
  EXPECT_EQ(count(base, 2560, 1920).num_rows, 307200);
  EXPECT_EQ(count(base, 896, 672).num_positions, 588);
  EXPECT_EQ(count(base, 81, 60).num_rows, 21 * 15);
  EXPECT_EQ(count(base, 81, 60).num_positions, 3 * 2);
  EXPECT_EQ(count(R"({"model_type": "donut-swin", "depths": [1]})", 8, 8).num_positions, 4);
}

TEST(ImageRows, APictureOfAnotherSizeHasNoPlace) {
  const auto rows = rows_of(R"({"model_type": "vit", "image_size": 384, "patch_size": 16})");
  ASSERT_TRUE(rows.ok()) << rows.status();
  const int64_t shape[] = {3, 384, 383};
  EXPECT_THAT(std::string((*rows)->count(shape, {}).status().message()),
              AllOf(HasSubstr("preprocessor_config.json"), HasSubstr("384 x 383"), HasSubstr("384 x 384"),
                    HasSubstr("dir/config.json: encoder: image_size")));
}

TEST(ImageRows, WhatIsWrongIsNamed) {
  const struct {
    std::string_view tower, part;
  } cases[] = {
      {"3", "dir/config.json: encoder: is no object"},
      {"{}", "dir/config.json: encoder: model_type"},
      {R"({"model_type": "beit"})", "\"beit\" is not supported; vit, deit and donut-swin are"},
      {R"({"model_type": "vit", "patch_size": 0})", "encoder: patch_size"},
      {R"({"model_type": "vit", "patch_size": [1]})", "encoder: patch_size: expected a whole number"},
      {R"({"model_type": "vit", "image_size": [0, 4]})", "encoder: image_size"},
      {R"({"model_type": "vit", "image_size": 32768, "patch_size": 1})", ""},
      {R"({"model_type": "donut-swin", "depths": []})", "encoder: depths"},
      {R"({"model_type": "donut-swin", "depths": 4})", "encoder: depths"},
  };
  for (const auto& one : cases) {
    const auto rows = rows_of(std::string(one.tower));
    if (one.part.empty()) {
      EXPECT_TRUE(rows.ok()) << one.tower;
      continue;
    }
    ASSERT_FALSE(rows.ok()) << one.tower;
    EXPECT_THAT(std::string(rows.status().message()), HasSubstr(std::string(one.part)));
  }
}

}  // namespace
}  // namespace transept
