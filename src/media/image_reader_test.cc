// Images of every kind against Pillow 12.3 (src/media/testdata/images/expected.jsonl, made by
// tools/make_image_fixtures.py; ../shared/golden/vision/decode.jsonl), what heads say, and what is refused by name.
#include "media/image_reader.h"

#include <gmock/gmock.h>

#include "media/image_testing.h"

namespace transept {
namespace {

using namespace std::string_view_literals;
using ::testing::HasSubstr;

std::string_view text_of(const Json& row, std::string_view key) { return row.find(key)->as_string(); }
int64_t number_of(const Json& row, std::string_view key) { return row.find(key)->as_int(); }

TEST(ImageReader, FixturesAsPillow) {
  size_t count = 0;
  for (const Json& row : read_jsonl(fixture_path("images/expected.jsonl"))) {
    SCOPED_TRACE(text_of(row, "file"));
    ++count;
    const std::string content = image_fixture(text_of(row, "file"));
    const ImageInfo info = image_info(content);
    EXPECT_EQ(image_format_name(info.format), text_of(row, "format"));
    EXPECT_EQ(info.num_channels, number_of(row, "channels"));
    EXPECT_EQ(info.orientation, number_of(row, "orientation"));
    EXPECT_EQ(info.oriented_width(), number_of(row, "width"));
    EXPECT_EQ(info.oriented_height(), number_of(row, "height"));
    for (const auto& [key, alpha] : {std::pair("white", ImageAlpha::kWhite), std::pair("drop", ImageAlpha::kDrop)}) {
      const StatusOr<RgbImage> image = decode_image(content, {}, alpha);
      ASSERT_TRUE(image.ok()) << image.status();
      EXPECT_EQ(image->width, number_of(row, "width"));
      EXPECT_EQ(image->height, number_of(row, "height"));
      EXPECT_EQ(pixels_digest(*image), text_of(row, key)) << key;
    }
  }
  EXPECT_GT(count, 130u);
}

TEST(ImageReader, SharedImagesAsPillow) {
  const std::string rows = shared_path("golden/vision/decode.jsonl");
  if (!std::filesystem::exists(rows)) GTEST_SKIP() << "no ../shared/golden/vision";
  for (const Json& row : read_jsonl(rows)) {
    SCOPED_TRACE(text_of(row, "id"));
    const StatusOr<RgbImage> image = decode_image(file_text(shared_path(text_of(row, "image"))));
    ASSERT_TRUE(image.ok()) << image.status();
    const Json& expected = *row.find("expect");
    EXPECT_EQ(image->width, number_of(expected, "width"));
    EXPECT_EQ(image->height, number_of(expected, "height"));
    // Also of formats that lose: decoders agree to the bit.
    EXPECT_EQ(pixels_digest(*image), text_of(expected, "sha256"));
  }
}

TEST(ImageReader, SharedImagesThatAreBroken) {
  const std::string folder = shared_path("images/broken");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared/images";
  const std::pair<std::string_view, std::string_view> expected[] = {
      {"bad_crc.png", "the checksum of its IHDR chunk is wrong"},
      {"bomb.png", "is 50000 x 50000; a side has at most 32768 pixels"},
      {"empty.png", "is empty"},
      {"header_only.png", "ends in its IHDR chunk"},
      {"html.jpg", "is no image of a known format"},
      {"riff_only.webp", "ends early: it has 16 of 24 bytes"},
      {"text.png", "is no image of a known format"},
      {"truncated.jpg", "ends in its head, in a segment of marker 196"},
      {"truncated.png", "ends early, at row"},
      {"zero_size.png", "is 0 x 5: a picture without pixels"},
  };
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) count += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(count, std::size(expected));
  for (const auto& [name, reason] : expected) {
    EXPECT_THAT(image_error(file_text(str_cat(folder, "/", name))), HasSubstr(std::string(reason))) << name;
  }
}

// A 16-bit grey is the one departure from Pillow, which clips it to white.
TEST(ImageReader, Grey16IsItsUpperByte) {
  const auto reader = decode_image(image_fixture("key_grey16_300.png"), {}, ImageAlpha::kDrop);
  ASSERT_TRUE(reader.ok());
  for (size_t i = 0; i < 400; ++i) {
    const size_t value = (i % 20 + 7 * (i / 20)) % 400;
    ASSERT_EQ(reader->pixels[3 * i], value >> 8) << i;
  }
}

TEST(ImageReader, FormatsThatAreNotRead) {
  const std::pair<std::string_view, std::string_view> kinds[] = {
      {"GIF89a\1\0\1\0"sv, "GIF"},
      {"GIF87a", "GIF"},
      {"II*\0\x08\0\0\0"sv, "TIFF"},
      {"MM\0*\0\0\0\x08"sv, "TIFF"},
      {"MM\0+\0\x08\0\0"sv, "TIFF"},
      {"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"sv, "BMP"},
      {"\0\0\0\x18"
       "ftypheic\0\0\0\0mif1heic"sv,
       "HEIF"},
      {"\0\0\0\x18"
       "ftypmif1\0\0\0\0mif1avif"sv,
       "AVIF"},
      {"\0\0\0\x1c"
       "ftypavif\0\0\0\0avifmif1miaf"sv,
       "AVIF"},
      {"\0\0\0\x0cjP  \r\n\x87\n"sv, "JPEG 2000"},
      {"\xff\x4f\xff\x51\0\x2f"sv, "JPEG 2000"},
      {"\0\0\0\x0cJXL \r\n\x87\n"sv, "JPEG XL"},
      {"\xff\x0a\xfa\x1f", "JPEG XL"},
      {"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "SVG"},
      {"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- drawn --><svg/>", "SVG"},
      {"%PDF-1.7\n", "PDF"},
  };
  for (const auto& [content, name] : kinds) {
    const auto reader = ImageReader::open(bytes_of_text(content));
    ASSERT_FALSE(reader.ok()) << name;
    EXPECT_EQ(reader.status().code(), absl::StatusCode::kUnimplemented) << name;
    EXPECT_EQ(error_message(reader.status()),
              str_cat("is of the format ", name, ", which is not read; JPEG, PNG and WebP are read"));
  }
}

TEST(ImageReader, WhatIsNoImage) {
  for (const std::string_view content :
       {""sv, "B"sv, "BM"sv, "BMW is no bitmap, and long enough"sv, "RIFF"sv, "RIFF\x10\0\0\0WAVEfmt "sv,
        "\x89PNG\n\x1a\n"sv, "\xff\xd8"sv, "<html><body>no vector</body></html>"sv,
        "\0\0\0\x18"
        "ftypisom\0\0\0\0isomavc1"sv,
        "GIF"sv, "\0\0\0\0"sv}) {
    const auto reader = ImageReader::open(bytes_of_text(content));
    ASSERT_FALSE(reader.ok()) << content;
    EXPECT_EQ(reader.status().code(), absl::StatusCode::kInvalidArgument) << content;
  }
  EXPECT_EQ(image_error(""), "is empty");
  EXPECT_EQ(image_error("hello"), "is no image of a known format; JPEG, PNG and WebP are read");
}

// The first bytes decide, whatever a file is called.
TEST(ImageReader, LimitsNameTheNumbers) {
  const std::string jpeg = image_fixture("turned_6.jpg");  // 13 x 9, of the file
  EXPECT_EQ(image_error(jpeg, {.max_pixels = 116}), "is 13 x 9, 117 pixels; the limit is 116");
  EXPECT_EQ(image_error(jpeg, {.max_side = 12}), "is 13 x 9; a side has at most 12 pixels");
  EXPECT_EQ(image_error(jpeg, {.max_pixels = 117, .max_side = 13}), "");
  EXPECT_EQ(image_error(image_fixture("turned_6.png"), {.max_pixels = 34}), "is 7 x 5, 35 pixels; the limit is 34");
  EXPECT_EQ(image_error(image_fixture("turned_6.webp"), {.max_side = 12}), "is 13 x 9; a side has at most 12 pixels");
  // Of an animation the canvas counts: 40 x 35 of a frame of 33 x 26.
  EXPECT_EQ(image_error(image_fixture("animated_part_opaque.webp"), {.max_pixels = 1000}),
            "is 40 x 35, 1400 pixels; the limit is 1000");
}

TEST(ImageReader, ReadersAreIndependent) {
  const std::string names[] = {"progressive.jpg", "rgb_alpha8_interlaced.png", "lossy_alpha.webp"};
  std::vector<std::string> contents;
  std::vector<std::unique_ptr<ImageReader>> readers;
  contents.reserve(std::size(names));
  for (const std::string& name : names) contents.push_back(image_fixture(name));
  readers.reserve(std::size(names));
  for (const std::string& content : contents) readers.push_back(ImageReader::open(bytes_of_text(content)).value());
  for (size_t i = readers.size(); i-- > 0;) {
    EXPECT_EQ(readers[i]->decode().value(), decode_image(contents[i]).value()) << names[i];
  }
}

}  // namespace
}  // namespace transept
