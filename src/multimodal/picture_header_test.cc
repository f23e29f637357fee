// A question above a picture: what transformers draws (tools/make_header_fixtures.py), its refusals, and what it is
// charged.
#include "multimodal/picture_header.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/content_digest.h"
#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "core/encoder_item.h"
#include "media/header_font_testing.h"
#include "media/resize_testing.h"
#include "multimodal/image_processors.h"
#include "multimodal/multimodal_testing.h"
#include "multimodal/python_wrap.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::json_of;
using testing::make_picture;
using testing::registry_of;

constexpr double kTolerance = 1e-6;
constexpr std::string_view kConfig =
    R"({"model_type": "pix2struct", "vision_config": {"patch_embed_hidden_size": 192}})";
constexpr std::string_view kSwitches = R"({"image_processor_type": "Pix2StructImageProcessor", "is_vqa": true,
    "max_patches": 60, "patch_size": {"height": 8, "width": 8}})";

class PictureHeader : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = testing::test_font();
    if (path.empty()) GTEST_SKIP() << "no font on this device (Debian: fonts-dejavu-core)";
    auto font = load_header_font(path);
    if (absl::IsUnimplemented(font.status()) || absl::IsNotFound(font.status())) {
      GTEST_SKIP() << "no FreeType on this device: " << error_message(font.status());
    }
    ASSERT_TRUE(font.ok()) << font.status();
    font_ = *std::move(font);
  }

  StatusOr<RgbImage> below(std::string_view question, RgbImage picture, Isa isa = Isa::kGeneric) const {
    return picture_below(question, std::move(picture), *font_, {}, isa);
  }
  std::unique_ptr<MultiModalRegistry> registry() const {
    const testing::TestFolder folder;
    folder.write("config.json", kConfig);
    folder.write("preprocessor_config.json", kSwitches);
    auto made = MultiModalRegistry::create(ModelConfig::load(folder.path()).value(), detect_isa(), font_);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  std::shared_ptr<const HeaderFont> font_;
};

std::string digest_of(const RgbImage& image) {
  DigestBuilder digest;
  digest.add_bytes(std::as_bytes(std::span(image.pixels)));
  return digest_hex(digest.finish());
}

void expect_picture(const Json& expected, const RgbImage& got) {
  const Json::Array& size = expected.as_array();
  EXPECT_EQ(got.width, size[0].as_int());
  EXPECT_EQ(got.height, size[1].as_int());
  EXPECT_EQ(digest_of(got), size[2].as_string());
}

void expect_values(const Json& row, const EncoderFeatures& got) {
  const Json::Array& shape = row.find("shape")->as_array();
  ASSERT_EQ(got.shape, (std::vector<int64_t>{shape[0].as_int(), shape[1].as_int()}));
  const auto stride = static_cast<size_t>(row.find("stride")->as_int());
  const Json::Array& values = row.find("values")->as_array();
  ASSERT_EQ((got.values.size() + stride - 1) / stride, values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = values[i].as_double();
    ASSERT_NEAR(got.values[i * stride], expected, kTolerance * std::max(1.0, std::abs(expected))) << i * stride;
  }
}

TEST_F(PictureHeader, IsWhatTransformersDraws) {
  const auto text = read_file(str_cat(source_dir(), "/src/multimodal/testdata/picture_headers.jsonl"));
  ASSERT_TRUE(text.ok()) << text.status();
  int num_rows = 0, num_values = 0;
  for (const std::string_view line : split(*text, '\n')) {
    if (line.empty()) continue;
    SCOPED_TRACE(line.substr(0, 120));
    const Json row = json_of(line);
    const std::string question = row.find("question")->as_string();
    const std::vector<std::string> lines = python_wrap(question, 80);
    std::vector<std::string> expected;
    for (const Json& one : row.find("lines")->as_array()) expected.push_back(one.as_string());
    EXPECT_EQ(lines, expected);
    expect_picture(*row.find("header"), font_->lay_out(lines).value()->draw());
    const Json::Array& place = row.find("picture")->as_array();
    const auto number = [&](size_t i) { return static_cast<int32_t>(place[i].as_int()); };
    const RgbImage picture = make_picture(number(0), number(1), static_cast<uint32_t>(number(2)));
    for (const Isa isa : present_isas()) expect_picture(*row.find("whole"), below(question, picture, isa).value());
    ++num_rows;
    if (row.find("values") == nullptr) continue;
    ++num_values;
    const auto processor =
        make_image_processor(ImageProcessorConfig(json_of(kSwitches), "file"), "", {detect_isa(), font_});
    ASSERT_TRUE(processor.ok()) << processor.status();
    const auto features = (*processor)->features_below(question, picture, {});
    ASSERT_TRUE(features.ok()) << features.status();
    expect_values(row, **features);
    EXPECT_EQ((*features)->image.width, picture.width) << "the picture as it was sent";
    EXPECT_EQ((*features)->image.height, picture.height);
    EXPECT_EQ((*features)->image.used_width % 8, 0) << "with its question, in patches";
  }
  EXPECT_EQ(num_rows, 11);
  EXPECT_EQ(num_values, 3);
}

TEST_F(PictureHeader, RefusesWhatWouldBeTooLarge) {
  const auto refusal = [&](std::string_view question, RgbImage picture) {
    const Status status = below(question, std::move(picture)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return error_message(status);
  };
  EXPECT_THAT(refusal(std::string(kMaxQuestionBytes + 1, 'a'), make_picture(2, 2, 1)),
              AllOf(HasSubstr("65537 bytes"), HasSubstr("65536")));
  EXPECT_THAT(refusal(std::string(kMaxQuestionBytes, 'W'), make_picture(2, 2, 1)), HasSubstr("sides of up to 32768"));
  EXPECT_THAT(refusal("Which?", make_picture(1, 3000, 1)),
              AllOf(HasSubstr("1 x 3000"), HasSubstr("with its question")));
}

TEST_F(PictureHeader, IsChargedBeforeItIsDrawn) {
  int64_t told = 0;
  const auto charge = [&](int64_t bytes) -> Status {
    told = bytes;
    return absl::ResourceExhaustedError("enough");
  };
  const RgbImage picture = make_picture(600, 400, 1);
  EXPECT_EQ(picture_below("Why?", picture, *font_, charge, Isa::kGeneric).status().message(), "enough");
  const RgbImage whole = below("Why?", picture).value();
  EXPECT_GE(told, static_cast<int64_t>(whole.pixels.size() + picture.pixels.size()));
  EXPECT_LE(told, static_cast<int64_t>(4 * whole.pixels.size()));
}

TEST_F(PictureHeader, AnItemIsAPictureAndItsQuestion) {
  const auto media = registry();
  EXPECT_TRUE(media->draws_question());
  const Json data =
      json_of(R"({"image": {"rgb": ")" + testing::base64_of(std::string(48, 'k')) + R"(", "width": 4, "height": 4}})");
  const auto digest = [&](const std::string& question) {
    const auto items = media->process(data, {}, {}, question);
    EXPECT_TRUE(items.ok()) << items.status();
    EXPECT_GT(items->front()->num_positions, 1);
    EncoderItem item;
    item.features = items->front();
    return digest_hex(item_digest(item));
  };
  EXPECT_EQ(digest("What?"), digest("What?"));
  EXPECT_NE(digest("What?"), digest("When?"));
  EXPECT_NE(digest("What?"), digest("What"));
  const Status missing = media->process(data, {}, {}).status();
  EXPECT_EQ(error_param(missing), "prompt");
}

TEST_F(PictureHeader, AFontIsForModelsThatDraw) {
  const testing::TestFolder folder;
  folder.write("config.json", kConfig);
  folder.write("preprocessor_config.json", R"({"image_processor_type": "Pix2StructImageProcessor"})");
  const auto config = ModelConfig::load(folder.path());
  const Status status = MultiModalRegistry::create(*config, detect_isa(), font_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(error_message(status), AllOf(HasSubstr("--header-font"), HasSubstr("pix2struct"), HasSubstr("is_vqa")));
  EXPECT_FALSE(MultiModalRegistry::create(*config).value()->draws_question());
}

TEST(PictureHeaderFont, ModelsThatDrawNeedOne) {
  const Status status = registry_of(kConfig, kSwitches).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(error_message(status),
              AllOf(HasSubstr("preprocessor_config.json: is_vqa"), HasSubstr("--header-font FILE")));
  EXPECT_THAT(error_message(load_header_font("/nowhere/font.ttf").status()),
              AllOf(HasSubstr("--header-font"), HasSubstr("/nowhere/font.ttf")));
  EXPECT_EQ(load_header_font("").value(), nullptr);
}

}  // namespace
}  // namespace transept
