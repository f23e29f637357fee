// One image item: from where it may come, and what is said of one that cannot be had. Nothing here may block, fetch, or
// read a file that the caller is not allowed to read.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "media/resize_testing.h"
#include "multimodal/multimodal_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using testing::base64_of;
using ::testing::HasSubstr;
using testing::json_of;
using testing::make_picture;
using testing::png_of;
using testing::registry_of;
using testing::TestFolder;

const MediaAccess kLocal{.local_paths = true};
const RgbImage kPicture = make_picture(7, 5, 1);

std::string message_of(const Json& item, const MediaAccess& access = {}, const MediaLimits& limits = {}) {
  const Status status = open_image(item, access, limits).status();
  EXPECT_FALSE(status.ok()) << item.dump();
  EXPECT_EQ(error_param(status), "multi_modal_data") << item.dump();
  return error_message(status);
}

void expect_picture(const Json& item, const MediaAccess& access = {}) {
  const auto image = open_image(item, access, {});
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(*image, kPicture) << item.dump();
}

std::string rgb_of(const RgbImage& image) {
  return base64_of({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
}

Json rgb_item(std::string_view rgb, const Json& width, const Json& height) {
  Json item = Json::object();
  item.set("rgb", rgb);
  item.set("width", width);
  item.set("height", height);
  return item;
}

TEST(OpenImage, ComesInFourForms) {
  const TestFolder dir;
  const std::string png = png_of(kPicture), base64 = base64_of(png);
  dir.write("a.jpg", png);  // the suffix tells nothing
  expect_picture(Json(dir.path() + "/a.jpg"), kLocal);
  for (const std::string_view type : {"image/png", "image/jpeg", "", "text/plain;charset=x"})
    expect_picture(Json(str_cat("data:", type, ";base64,", base64)));
  expect_picture(Json(str_cat("DATA:image/png;base64,", base64)));
  expect_picture(json_of(str_cat(R"({"base64": ")", base64, R"(", "rgb": null})")));
  expect_picture(rgb_item(rgb_of(kPicture), 7, 5));
}

TEST(OpenImage, APathIsFollowedOnlyWhereThatIsAllowed) {
  const TestFolder outside, inside;
  outside.write("secret.png", png_of(kPicture));
  inside.write("a.png", png_of(kPicture));
  std::filesystem::create_symlink(outside.path() + "/secret.png", inside.path() + "/link.png");
  EXPECT_THAT(message_of(Json(inside.path() + "/a.png")),
              HasSubstr("paths are not allowed here: send the image itself"));
  const MediaAccess access{.local_paths = true, .allowed_path = inside.path()};
  expect_picture(Json(inside.path() + "/a.png"), access);
  for (const std::string& bad :
       {outside.path() + "/secret.png", inside.path() + "/link.png", inside.path() + "/missing.png", inside.path(),
        std::string("/dev/zero"), std::string()})
    EXPECT_THAT(message_of(Json(bad), access), HasSubstr("not a file below the folder that is allowed")) << bad;
  EXPECT_THAT(message_of(Json(std::string_view("/etc/passwd\0.png", 16)), kLocal), HasSubstr("zero byte"));
  const std::string fifo = outside.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, std::string("/dev/zero"), outside.path(), outside.path() + "/missing"})
    EXPECT_THAT(message_of(Json(path), kLocal), HasSubstr(path));
}

TEST(OpenImage, NothingIsFetched) {
  for (const std::string_view url :
       {"http://example.com/a.png", "https://example.com/a.png", "HTTPS://example.com/a.png", "file:///etc/passwd"})
    EXPECT_THAT(message_of(Json(url), kLocal), HasSubstr("URLs are not fetched: send a data: URL"));
}

TEST(OpenImage, WhatIsNoImageIsNamed) {
  const TestFolder dir;
  dir.write("text.png", "this is no picture at all");
  dir.write("cut.png", png_of(kPicture).substr(0, 60));
  EXPECT_THAT(message_of(Json(dir.path() + "/text.png"), kLocal), HasSubstr(dir.path() + "/text.png: "));
  EXPECT_THAT(message_of(Json(dir.path() + "/cut.png"), kLocal), HasSubstr(dir.path() + "/cut.png: "));
  const MediaAccess below{.local_paths = true, .allowed_path = dir.path()};
  EXPECT_THAT(message_of(json_of(R"({"base64": "AAAA"})")), HasSubstr("multi_modal_data: image: "));
  EXPECT_THAT(message_of(Json("data:image/png;base64,AAAA")), HasSubstr("multi_modal_data: image: "));
  EXPECT_THAT(error_message(open_image(Json("data:;base64,AAAA"), {}, {}, "image[3]").status()),
              HasSubstr("multi_modal_data: image[3]: "));
}

TEST(OpenImage, LimitsAreNamedWithBothCounts) {
  const TestFolder dir;
  const std::string png = png_of(kPicture), base64 = base64_of(png);
  dir.write("a.png", png);
  const MediaLimits few_bytes{.max_bytes = 100};
  EXPECT_THAT(message_of(Json(dir.path() + "/a.png"), kLocal, few_bytes), HasSubstr("100"));
  EXPECT_THAT(message_of(Json(str_cat("data:;base64,", base64)), {}, few_bytes),
              AllOf(HasSubstr(str_cat(base64.size() / 4 * 3, " bytes")), HasSubstr("100 allowed")));
  MediaLimits small;
  small.image.max_pixels = 34;
  for (const Json& item : {Json(str_cat("data:;base64,", base64)), rgb_item(rgb_of(kPicture), 7, 5)})
    EXPECT_THAT(message_of(item, {}, small), HasSubstr("34")) << item.dump();
  small = {};
  small.image.max_side = 6;
  for (const Json& item : {Json(str_cat("data:;base64,", base64)), rgb_item(rgb_of(kPicture), 7, 5)})
    EXPECT_THAT(message_of(item, {}, small), HasSubstr("6")) << item.dump();
}

TEST(OpenImage, OtherShapesAreRefused) {
  const std::string rgb = rgb_of(kPicture);
  for (const std::string_view item :
       {"7", "null", "true", "[]", "{}", R"({"rgb": null})", R"({"width": 7, "height": 5})",
        R"({"base64": "AAAA", "rgb": "AAAA", "width": 1, "height": 1})"})
    EXPECT_THAT(message_of(json_of(item)), HasSubstr("expected a path, \"data:image/")) << item;
  EXPECT_THAT(message_of(json_of(R"({"base64": 7})")), HasSubstr("base64 must be a string"));
  EXPECT_THAT(message_of(json_of(R"({"base64": "A*AA"})")), HasSubstr("base64 does not hold base64"));
  EXPECT_THAT(message_of(Json("data:image/png,AAAA")), HasSubstr("must be \"data:image/..;base64,..\""));
  EXPECT_THAT(message_of(Json("data:image/png;base64")), HasSubstr("must be \"data:image/..;base64,..\""));
  EXPECT_THAT(message_of(Json("data:image/png;base64,A AA")), HasSubstr("does not hold base64"));
  EXPECT_THAT(message_of(json_of(R"({"rgb": [1, 2, 3], "width": 1, "height": 1})")), HasSubstr("rgb must be a string"));
  for (const Json& side : {Json(0), Json(-1), Json(32769), Json(1.5), Json("7"), Json()}) {
    EXPECT_THAT(message_of(rgb_item(rgb, side, 5)), HasSubstr("width must be a whole number from 1 to 32768"));
    EXPECT_THAT(message_of(rgb_item(rgb, 7, side)), HasSubstr("height must be a whole number from 1 to 32768"));
  }
  EXPECT_THAT(message_of(rgb_item(rgb, 7, 4)), HasSubstr("105 bytes are more than the 86 allowed"));
  EXPECT_THAT(message_of(rgb_item(rgb, 7, 6)), HasSubstr("rgb holds 105 bytes, and 7 x 6 pixels are 126"));
  EXPECT_THAT(message_of(rgb_item("", 1, 1)), HasSubstr("rgb holds 0 bytes"));
}

constexpr std::string_view kMany =
    R"({"model_type": "mllama", "vision_config": {"image_size": 4, "patch_size": 2, "max_num_tiles": 1,
        "supported_aspect_ratios": [[1, 1]]}})";
constexpr std::string_view kTinyMllama =
    R"({"image_processor_type": "MllamaImageProcessor", "size": {"height": 4, "width": 4}, "max_image_tiles": 1,
        "image_mean": [0.4, 0.4, 0.4], "image_std": [0.3, 0.3, 0.3]})";
constexpr std::string_view kBlip = R"({"model_type": "blip"})";
constexpr std::string_view kTinyBlip = R"({"image_processor_type": "BlipImageProcessor", "size": 4})";

TEST(Registry, GivesImagesInOrder) {
  const auto registry = registry_of(kMany, kTinyMllama);
  ASSERT_TRUE(registry.ok()) << registry.status();
  ASSERT_NE((*registry)->image(), nullptr);
  EXPECT_EQ((*registry)->audio(), nullptr);
  RgbImage white{1, 1, {255, 255, 255}}, dark{1, 1, {0, 0, 0}};
  Json data = Json::object();
  data.set("image", Json(Json::Array{rgb_item(rgb_of(white), 1, 1), rgb_item(rgb_of(dark), 1, 1)}));
  const auto two = (*registry)->process(data, {});
  ASSERT_TRUE(two.ok()) << two.status();
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ(two->front()->shape, (std::vector<int64_t>{1, 3, 4, 4}));
  EXPECT_GT(two->front()->values[0], 1);
  EXPECT_LT(two->back()->values[0], -1);
  data.set("image", rgb_item(rgb_of(white), 1, 1));
  EXPECT_EQ((*registry)->process(data, {}).value().size(), 1u);
}

TEST(Registry, RefusesImagesByName) {
  const auto registry = registry_of(kMany, kTinyMllama);
  ASSERT_TRUE(registry.ok()) << registry.status();
  const auto message = [&](const MultiModalRegistry& by, std::string_view data) {
    const Status status = by.process(json_of(data), {}).status();
    EXPECT_EQ(error_param(status), "multi_modal_data") << data;
    return error_message(status);
  };
  EXPECT_THAT(message(**registry, "[]"), HasSubstr("must be an object"));
  EXPECT_THAT(message(**registry, "{}"), HasSubstr("holds no image"));
  EXPECT_THAT(message(**registry, R"({"image": []})"), HasSubstr("holds no image"));
  EXPECT_THAT(message(**registry, R"({"image": null})"), HasSubstr("holds no image"));
  EXPECT_THAT(message(**registry, R"({"audio": "a.wav"})"), HasSubstr("(mllama) takes no audio input"));
  EXPECT_THAT(message(**registry, R"({"image": [1,2,3,4,5,6,7,8,9]})"), HasSubstr("9 items, this model takes 8"));
  MediaLimits fewer;
  fewer.max_images = 2;
  EXPECT_THAT(error_message((*registry)->process(json_of(R"({"image": [1,2,3]})"), {}, fewer).status()),
              HasSubstr("3 items are more than the 2 allowed"));
  EXPECT_THAT(message(**registry, R"({"image": [{"rgb": "AAAA", "width": 1, "height": 1}, null]})"),
              HasSubstr("image[1]: expected a path"));
  const auto one = registry_of(kBlip, kTinyBlip);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(message(**one, R"({"image": ["a.png", "b.png"]})"), HasSubstr("image: 2 items, this model takes 1"));
  const auto whisper = registry_of(testing::kTinyWhisper, testing::kTinyFrontEnd);
  ASSERT_TRUE(whisper.ok()) << whisper.status();
  EXPECT_THAT(message(**whisper, R"({"image": "a.png"})"), HasSubstr("(whisper) takes no image input"));
}

// What is told of each picture: its pixels while they are decoded, then its features, on top of those before it.
TEST(Registry, ChargesPixelsBeforeTheyAreDecodedAndThenFeatures) {
  const auto registry = registry_of(kMany, kTinyMllama);
  ASSERT_TRUE(registry.ok()) << registry.status();
  const Json item(str_cat("data:;base64,", base64_of(png_of(RgbImage{2, 2, std::vector<uint8_t>(12, 7)}))));
  std::vector<int64_t> told;
  MediaAccess access;
  access.charge = [&](int64_t bytes) {
    told.push_back(bytes);
    return ok_status();
  };
  Json data = Json::object();
  data.set("image", Json(Json::Array{item, item}));
  ASSERT_TRUE((*registry)->process(data, access).ok());
  constexpr int64_t kFeatures = 3 * 4 * 4 * 4;
  ASSERT_EQ(told.size(), 4u);
  EXPECT_GE(told[0], 2 * 2 * 3);
  EXPECT_EQ(told[1], kFeatures);
  EXPECT_EQ(told[2], kFeatures + told[0]);
  EXPECT_EQ(told[3], 2 * kFeatures);
  access.charge = [&](int64_t /*bytes*/) { return resource_exhausted("full"); };
  EXPECT_EQ((*registry)->process(data, access).status().code(), absl::StatusCode::kResourceExhausted);
}

// A processor's refusal names the item.
TEST(Registry, NamesTheImageThatAProcessorRefuses) {
  const auto registry = registry_of(kBlip, R"({"image_processor_type": "CLIPImageProcessor", "size": 60000})");
  ASSERT_TRUE(registry.ok()) << registry.status();
  const Status status =
      (*registry)->process(json_of(R"({"image": [{"rgb": "AAAAAAAA", "width": 2, "height": 1}]})"), {}).status();
  EXPECT_THAT(error_message(status), HasSubstr("multi_modal_data: image[0]: the picture of 2 x 1 pixels"));
}

}  // namespace
}  // namespace transept
