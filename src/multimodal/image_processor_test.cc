// What transformers makes of small pictures (tools/make_processor_fixtures.py), at every level; refusals by file and
// field; sizes that no picture may reach.
#include "multimodal/image_processor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/folder_testing.h"
#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "media/resize_testing.h"
#include "multimodal/image_pixels.h"
#include "multimodal/multimodal_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::json_of;
using testing::make_picture;

constexpr double kTolerance = 1e-6;

// A folder with the files of an object, and a config.json of the model type.
StatusOr<std::unique_ptr<ImageProcessor>> processor_of(const Json& files, std::string_view model_type, Isa isa) {
  const testing::TestFolder dir;
  dir.write("config.json", str_cat(R"({"model_type": ")", model_type, R"("})"));
  for (const auto& [name, content] : files.as_object()) dir.write(name, content.dump());
  ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::load(dir.path()));
  return make_image_processor(config, {isa});
}

// As the script's: the fourth number is a frame of white pixels at the left, the right and the bottom.
RgbImage picture_of(const Json::Array& place) {
  const auto number = [&](size_t i) { return static_cast<int32_t>(place[i].as_int()); };
  RgbImage inner = make_picture(number(0), number(1), static_cast<uint32_t>(number(2)));
  if (place.size() < 4) return inner;
  const int32_t frame = number(3);
  const ImageSize size{inner.height + frame, inner.width + 2 * frame};
  RgbImage outer = placed(inner, size, 0, frame);
  for (int64_t y = 0; y < size.height; ++y) {
    for (int64_t x = 0; x < size.width; ++x) {
      if (y < inner.height && x >= frame && x < size.width - frame) continue;
      std::fill_n(outer.pixels.begin() + (y * size.width + x) * 3, 3, 255);
    }
  }
  return outer;
}

void expect_features(const Json& row, const EncoderFeatures& got) {
  EXPECT_EQ(got.modality, Modality::kImage);
  std::vector<int64_t> shape;
  for (const Json& size : row.find("shape")->as_array()) shape.push_back(size.as_int());
  ASSERT_EQ(got.shape, shape);
  std::vector<int32_t> extras;
  for (const Json& number : row.find("extras")->as_array()) extras.push_back(static_cast<int32_t>(number.as_int()));
  EXPECT_EQ(got.extras, extras);
  const auto stride = static_cast<size_t>(row.find("stride")->as_int());
  const Json::Array& values = row.find("values")->as_array();
  ASSERT_EQ((got.values.size() + stride - 1) / stride, values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = values[i].as_double();
    ASSERT_NEAR(got.values[i * stride], expected, kTolerance * std::max(1.0, std::abs(expected))) << i * stride;
  }
  // numpy's array_split: the first parts are longer by one.
  const Json::Array& sums = row.find("sums")->as_array();
  size_t at = 0;
  for (size_t part = 0; part < sums.size(); ++part) {
    const size_t count = got.values.size() / sums.size() + (part < got.values.size() % sums.size() ? 1 : 0);
    double sum = 0, size = 1;
    for (const size_t end = at + count; at < end; ++at) {
      sum += got.values[at];
      size += std::abs(got.values[at]);
    }
    ASSERT_NEAR(sum, sums[part].as_double(), kTolerance * size) << "part " << part;
  }
}

TEST(ImageProcessor, GivesTheValuesOfTransformers) {
  const StatusOr<std::string> text =
      read_file(str_cat(source_dir(), "/src/multimodal/testdata/image_processors.jsonl"));
  ASSERT_TRUE(text.ok()) << text.status();
  int num_taken = 0, num_refused = 0;
  for (const std::string_view line : split(*text, '\n')) {
    if (line.empty()) continue;
    SCOPED_TRACE(line.substr(0, 300));
    const Json row = json_of(line);
    for (const Isa isa : present_isas()) {
      auto processor = processor_of(*row.find("files"), row.find("model_type")->as_string(), isa);
      const RgbImage picture = picture_of(row.find("picture")->as_array());
      const auto features = processor.ok() ? (*processor)->features(picture) : processor.status();
      if (row.find("refused") != nullptr) {
        ++num_refused;
        EXPECT_EQ(features.status().code(), absl::StatusCode::kInvalidArgument) << features.status();
        continue;
      }
      ++num_taken;
      ASSERT_TRUE(features.ok()) << features.status();
      ASSERT_NO_FATAL_FAILURE(expect_features(row, **features));
    }
  }
  EXPECT_GE(num_taken, 100);
  EXPECT_GE(num_refused, 10);
}

// transformers masks a patch whose numbers sum to 0 as it masks those that pad. Two levels, as often each, become -1
// and 1: a dark patch of one pixel in row 1, column 2 sums to 1 + 2 - 3.
TEST(ImageProcessor, PatchesThatSumToZeroAreNotInUse) {
  Json files = Json::object();
  files.set("preprocessor_config.json",
            json_of(R"({"image_processor_type": "Pix2StructImageProcessor", "max_patches": 4, "patch_size": 1})"));
  const auto processor = processor_of(files, "pix2struct", Isa::kGeneric);
  ASSERT_TRUE(processor.ok()) << processor.status();
  RgbImage picture;
  picture.width = picture.height = 2;
  for (const uint8_t level : std::array<uint8_t, 4>{200, 100, 200, 100})
    picture.pixels.insert(picture.pixels.end(), 3, level);
  const auto features = (*processor)->features(std::move(picture));
  ASSERT_TRUE(features.ok()) << features.status();
  EXPECT_THAT((*features)->shape, ElementsAre(3, 5));
  EXPECT_THAT((*features)->values, ElementsAre(1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 2, -1, -1, -1));
}

Status status_of(std::string_view preprocessor, std::string_view model_type = "any") {
  Json files = Json::object();
  files.set("preprocessor_config.json", json_of(preprocessor));
  return processor_of(files, model_type, Isa::kGeneric).status();
}

TEST(ImageProcessor, RefusesByFileAndField) {
  const auto refused = [](std::string_view preprocessor, std::string_view field, std::string_view reason) {
    const Status status = status_of(preprocessor);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << preprocessor << status;
    EXPECT_EQ(error_param(status), field) << status;
    EXPECT_THAT(error_message(status), HasSubstr("/preprocessor_config.json: ")) << preprocessor;
    EXPECT_THAT(error_message(status), HasSubstr(reason)) << preprocessor;
  };
  refused(R"({"size": 5})", "image_processor_type", "is missing");
  refused(R"({"image_processor_type": 5})", "image_processor_type", "a string");
  refused(R"({"image_processor_type": "ViT"})", "image_processor_type", "not the name");
  refused(R"({"image_processor_type": "ImageProcessor"})", "image_processor_type", "not the name");
  const auto vit = [](std::string_view rest) {
    return str_cat(R"({"image_processor_type": "ViTImageProcessor", )", rest, "}");
  };
  refused(vit(R"("crop_pct": 0.9)"), "crop_pct", "may change pixels");
  refused(vit(R"("max_patches": 9)"), "max_patches", "may change pixels");
  refused(vit(R"("size": 0)"), "size", "1 to 65535");
  refused(vit(R"("size": 65536)"), "size", "1 to 65535");
  refused(vit(R"("size": [5])"), "size", "two sides");
  refused(vit(R"("size": [5, 6, 7])"), "size", "two sides");
  refused(vit(R"("size": [5, "6"])"), "size", "two sides");
  refused(vit(R"("size": "large")"), "size", "whole number");
  refused(vit(R"("size": {"height": 5})"), "size", "expected {height, width}");
  refused(vit(R"("size": {"height": 5, "width": 6, "depth": 1})"), "size", "expected {height, width}");
  refused(vit(R"("size": {"height": 5, "width": -6})"), "width", "1 to 65535");
  refused(vit(R"("size": {"min_pixels": 5, "max_pixels": 6})"), "size", "resizes to");
  refused(vit(R"("do_center_crop": true)"), "crop_size", "is missing");
  refused(vit(R"("do_center_crop": true, "crop_size": {"shortest_edge": 5})"), "crop_size", "height and width");
  refused(vit(R"("do_center_crop": true, "crop_size": 60000)"), "crop_size", "134217728 values");
  refused(vit(R"("resample": 6)"), "resample", "0 to 5");
  refused(vit(R"("resample": "bicubic")"), "resample", "whole number");
  refused(vit(R"("do_resize": 1)"), "do_resize", "true or false");
  refused(vit(R"("rescale_factor": "x")"), "rescale_factor", "a number");
  refused(vit(R"("image_mean": [0.1, 0.2])"), "image_mean", "three numbers");
  refused(vit(R"("image_mean": [0.1, 0.2, 1e9])"), "image_mean", "three numbers");
  refused(vit(R"("image_std": [0.1, 0, 0.3])"), "image_std", "three numbers");
  refused(vit(R"("image_std": -1)"), "image_std", "a number");
  const auto of = [](std::string_view name, std::string_view rest) {
    return str_cat(R"({"image_processor_type": ")", name, R"(ImageProcessor", )", rest, "}");
  };
  refused(of("Donut", R"("size": {"shortest_edge": 5})"), "size", "height and width");
  refused(of("Donut", R"("size": [65535, 65535])"), "size", "134217728 values");
  refused(of("Donut", R"("do_crop_margin": true)"), "do_crop_margin", "may change pixels");
  refused(of("Mllama", R"("size": [5, 6])"), "size", "equal");
  refused(of("Mllama", R"("size": 5000, "max_image_tiles": 4)"), "max_image_tiles", "134217728 values");
  refused(of("Mllama", R"("max_image_tiles": 0)"), "max_image_tiles", "1 to 64");
  refused(of("Mllama", R"("do_resize": false)"), "do_resize", "does not work without");
  refused(of("Pix2Struct", R"("max_patches": 1000000)"), "max_patches", "134217728 values");
  refused(of("Pix2Struct", R"("patch_size": {"height": 5, "width": 2000})"), "patch_size", "up to 1024");
  refused(of("Qwen2VL", R"("min_pixels": 0)"), "min_pixels", "1 to");
  refused(of("Qwen2VL", R"("min_pixels": 50, "max_pixels": 49)"), "min_pixels", "50 pixels at least, and 49 at most");
  refused(of("Qwen2VL", R"("max_pixels": 134217728)"), "max_pixels", "values");
  refused(of("Qwen2VL", R"("size": {"height": 5, "width": 5}, "min_pixels": 1, "max_pixels": 9)"), "size",
          "shortest_edge");
  refused(of("Qwen2VL", R"("merge_size": 99)"), "merge_size", "1 to 16");
}

TEST(ImageProcessor, NamesClassesThatItLacks) {
  const Status other = status_of(R"({"image_processor_type": "SiglipImageProcessorFast"})");
  EXPECT_EQ(other.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(error_message(other), HasSubstr("SiglipImageProcessor is not supported; those of ViT, DeiT, CLIP"));
  const Status header = status_of(R"({"image_processor_type": "Pix2StructImageProcessor", "is_vqa": true})");
  EXPECT_EQ(header.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(error_param(header), "is_vqa");
}

TEST(ImageProcessor, NamesFilesThatAreNotThere) {
  const Status missing = processor_of(Json::object(), "blip", Isa::kGeneric).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(error_message(missing), HasSubstr("preprocessor_config.json"));
  Json files = Json::object();
  files.set("processor_config.json",
            json_of(R"({"image_processor": {"image_processor_type": "ViTImageProcessor", "size": -1}})"));
  const Status nested = processor_of(files, "vit", Isa::kGeneric).status();
  EXPECT_THAT(error_message(nested), HasSubstr("/processor_config.json: image_processor: size: "));
  files.set("processor_config.json", json_of(R"({"image_processor": [1]})"));
  EXPECT_THAT(error_message(processor_of(files, "vit", Isa::kGeneric).status()), HasSubstr("expected an object"));
}

// Keys without effect on pixels, and switches that are off, are passed over.
TEST(ImageProcessor, TakesWhatChangesNoPixels) {
  const Status status = status_of(
      R"({"image_processor_type": "CLIPImageProcessor", "auto_map": {"AutoProcessor": "x"}, "processor_class": "P",
          "_valid_processor_keys": ["images"], "image_seq_length": 577, "do_convert_rgb": null, "data_format": "channels_first",
          "size_divisor": null, "do_tricks": false})");
  EXPECT_TRUE(status.ok()) << status;
}

TEST(ImageProcessor, RefusesPicturesThatGrowTooLarge) {
  const auto error_of = [](std::string_view preprocessor, int32_t width, int32_t height) {
    Json files = Json::object();
    files.set("preprocessor_config.json", json_of(preprocessor));
    const auto processor = processor_of(files, "any", detect_isa());
    EXPECT_TRUE(processor.ok()) << processor.status();
    if (!processor.ok()) return std::string();
    const auto features = (*processor)->features(make_picture(width, height, 1));
    EXPECT_EQ(features.status().code(), absl::StatusCode::kInvalidArgument) << features.status();
    return error_message(features.status());
  };
  EXPECT_THAT(error_of(R"({"image_processor_type": "CLIPImageProcessor"})", 1, 3000), HasSubstr("224 x 672000"));
  EXPECT_THAT(error_of(R"({"image_processor_type": "DonutImageProcessor"})", 40, 1), HasSubstr("76800 x 1920"));
  EXPECT_THAT(error_of(R"({"image_processor_type": "DonutImageProcessor", "size": [5000, 5000]})", 1, 7),
              HasSubstr("5000 x 35000"));
  EXPECT_THAT(
      error_of(R"({"image_processor_type": "ViTImageProcessor", "size": {"max_height": 5, "max_width": 5}})", 9, 1),
      HasSubstr("5 x 0"));
  EXPECT_THAT(error_of(R"({"image_processor_type": "ViTImageProcessor", "size": {"shortest_edge": 7000}})", 1, 1),
              HasSubstr("134217728 values"));
}

}  // namespace
}  // namespace transept
