#include "multimodal/image_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

using Maker = StatusOr<std::unique_ptr<ImageRows>> (*)(const ModelConfig& config);

StatusOr<std::unique_ptr<ImageRows>> rows_by(Maker make, const std::string& tower) {
  ModelConfig config;
  config.path = "dir";
  config.raw = Json::parse(tower.empty() ? "{}" : str_cat(R"({"vision_config": )", tower, "}")).value();
  return make(config);
}

TEST(ImageRows, BlipHasATokenMoreThanPatches) {
  const auto rows = rows_by(make_blip_image_rows, "");
  ASSERT_TRUE(rows.ok()) << rows.status();
  const int64_t usual[] = {3, 384, 384}, other[] = {3, 224, 224};
  EXPECT_EQ((*rows)->count(usual, {})->num_positions, 577) << "BlipVisionConfig's defaults";
  EXPECT_THAT(std::string((*rows)->count(other, {}).status().message()), HasSubstr("vision_config: image_size"));
  const int64_t small[] = {3, 48, 48};
  EXPECT_EQ((*rows_by(make_blip_image_rows, R"({"image_size": 48, "patch_size": 8})"))->count(small, {})->num_rows, 37);
  EXPECT_THAT(std::string(rows_by(make_blip_image_rows, R"({"patch_size": 0})").status().message()),
              HasSubstr("dir/config.json: vision_config: patch_size"));
}

TEST(ImageRows, Pix2StructHasThoseInUse) {
  const auto rows = rows_by(make_pix2struct_image_rows, R"({"patch_embed_hidden_size": 12, "seq_len": 9})");
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const int64_t patches : {1, 9}) {
    const int64_t shape[] = {patches, 14};
    EXPECT_EQ((*rows)->count(shape, {})->num_positions, patches);
    EXPECT_EQ((*rows)->count(shape, {})->num_rows, patches);
  }
  const std::pair<std::vector<int64_t>, std::string_view> wrong[] = {
      {{10, 14}, "10 patches, and the tower takes up to 9 (dir/config.json: vision_config: seq_len)"},
      {{9, 13}, "patches of 11 values, and the tower takes 12"},
      {{0, 14}, "[patches, 2 + pixels]"},
      {{-1, 14}, "[patches, 2 + pixels]"},
      {{9}, "[patches, 2 + pixels]"},
      {{3, 9, 14}, "[patches, 2 + pixels]"},
      {{9, 1}, "patches of -1 values"},
      {{INT64_MAX, 14}, "seq_len"}};
  for (const auto& [shape, part] : wrong) {
    EXPECT_THAT(std::string((*rows)->count(shape, {}).status().message()), HasSubstr(part));
  }
  const auto usual = rows_by(make_pix2struct_image_rows, "");
  const int64_t most[] = {4096, 770};
  EXPECT_EQ((*usual)->count(most, {})->num_positions, 4096) << "Pix2StructVisionConfig's defaults";
  for (const std::string& key : {std::string("seq_len"), std::string("patch_embed_hidden_size")}) {
    for (const char* value : {"0", "-3", "1e12", "\"9\""}) {
      EXPECT_THAT(
          std::string(rows_by(make_pix2struct_image_rows, str_cat("{\"", key, "\": ", value, "}")).status().message()),
          HasSubstr(str_cat("dir/config.json: vision_config: ", key)));
    }
  }
}

TEST(ImageRows, PatchesHavePlacesOfTheTables) {
  const auto rows = rows_by(make_pix2struct_image_rows, R"({"patch_embed_hidden_size": 1, "seq_len": 4})");
  const int64_t shape[] = {2, 3};
  const auto status = [&](float row, float column) {
    const float values[] = {1, 1, 9, row, column, -9};
    return (*rows)->check_places(shape, values);
  };
  EXPECT_TRUE(status(1, 2).ok());
  EXPECT_TRUE(status(3, 3).ok());
  EXPECT_TRUE(status(0, 0).ok());
  for (const float wrong : {4.0f, -1.0f, 1e30f, std::nanf(""), -std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(std::string(status(wrong, 1).message()), HasSubstr("those below 4 (dir/config.json: vision_config"));
    EXPECT_FALSE(status(1, wrong).ok()) << wrong;
  }
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
