// Images that are cut, damaged, lying or hostile: an answer that names the reason, in bounded time, and never a crash.
// Memory is image_memory_test.cc's.
#include <gmock/gmock.h>

#include <ctime>
#include <random>

#include "base/sanitized_testing.h"
#include "media/image_testing.h"
#include "media/webp_bits_testing.h"

namespace transept {
namespace {

using namespace std::string_view_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

absl::StatusCode code_of(std::string_view content, const ImageLimits& limits = {}) {
  return decode_image(content, limits).status().code();
}

// One fixture of each way to be stored: others differ in a head or in pixels.
bool is_one_of_many(std::string_view name) { return name.starts_with("turned_") || name.starts_with("exif_"); }

// A part of a file is refused, or it is the same picture: what is missing was not needed.
TEST(BadImage, EveryPrefix) {
  for (const std::string& name : image_fixtures()) {
    if (is_one_of_many(name)) continue;
    SCOPED_TRACE(name);
    const std::string content = image_fixture(name);
    const RgbImage whole = decode_image(content).value();
    for (size_t size = 0; size < content.size(); size += kSanitized && size > 100 ? 7 : 1) {
      const StatusOr<RgbImage> part = decode_image(content.substr(0, size));
      if (part.ok()) {
        ASSERT_EQ(*part, whole) << size;
        // Checksums, ends of streams; of an animation all pictures but the first.
        ASSERT_TRUE(size + 100 > content.size() || name.starts_with("animated")) << size << " of " << content.size();
      } else {
        ASSERT_EQ(part.status().code(), absl::StatusCode::kInvalidArgument) << size;
        ASSERT_FALSE(error_message(part.status()).empty());
      }
    }
  }
}

TEST(BadImage, FlippedBits) {
  std::mt19937 random(29);
  const ImageLimits limits{.max_pixels = 1 << 20, .max_side = 4096};
  for (const std::string& name : image_fixtures()) {
    SCOPED_TRACE(name);
    const std::string content = image_fixture(name);
    for (int round = 0; round < 80; ++round) {
      std::string damaged = content;
      const size_t reach = round % 2 == 0 ? std::min<size_t>(100, content.size()) : content.size();  // heads more often
      for (int i = 0; i <= round % 4; ++i) damaged[random() % reach] ^= static_cast<char>(1 << random() % 8);
      const StatusOr<RgbImage> image = decode_image(damaged, limits);
      if (image.ok()) {
        ASSERT_EQ(image->pixels.size(), 3 * static_cast<size_t>(image->width) * static_cast<size_t>(image->height));
      } else {
        ASSERT_FALSE(error_message(image.status()).empty()) << round;
      }
    }
  }
}

TEST(BadImage, TheRowIsNamed) {
  const std::string jpeg = image_fixture("photo_420.jpg");  // 27 rows, 16 of them a row of blocks
  EXPECT_THAT(image_error(jpeg.substr(0, jpeg.size() / 2)),
              AllOf(StartsWith("ends early, at row "), HasSubstr(" of 27")));
  EXPECT_EQ(image_error(image_fixture("progressive.jpg").substr(0, 700)), "ends early, at row 0 of 27");
  const std::string png = image_fixture("many_parts.png");  // 5 rows
  EXPECT_THAT(image_error(png.substr(0, png.find("IEND") - 150)),
              ::testing::ContainsRegex("^ends early, at row [1-4] of 5$"));
  // Data that end before the last row, in a file that does not.
  const size_t second = png.find("IDAT", png.find("IDAT") + 4) - 4;
  EXPECT_EQ(image_error(str_cat(png.substr(0, second), png.substr(png.find("IEND") - 4))), "ends early, at row 0 of 5");
}

std::string jpeg_with_frame(std::string_view marker, uint32_t precision, uint32_t width, uint32_t height,
                            std::string_view components) {
  const std::string frame =
      str_cat(big(precision, 1), big(height, 2), big(width, 2), big(components.size() / 3, 1), components);
  return str_cat("\xff\xd8\xff", marker, big(frame.size() + 2, 2), frame, "\xff\xda\0\x08\1\1\0\0\x3f\0"sv);
}

constexpr std::string_view kOneComponent = "\x01\x11\0"sv;

TEST(BadImage, JpegsThatAreNotRead) {
  const std::pair<std::string_view, std::string_view> kinds[] = {{"\xc3", "lossless coding"},
                                                                 {"\xc5", "hierarchical coding"},
                                                                 {"\xc9", "arithmetic coding"},
                                                                 {"\xca", "arithmetic coding"},
                                                                 {"\xcb", "lossless arithmetic coding"}};
  for (const auto& [marker, name] : kinds) {
    const std::string content = jpeg_with_frame(marker, 8, 4, 4, kOneComponent);
    EXPECT_EQ(code_of(content), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(image_error(content), str_cat("is a JPEG with ", name, ", which is not read"));
  }
  EXPECT_EQ(image_error(jpeg_with_frame("\xc1", 12, 4, 4, kOneComponent)),
            "is a JPEG with 12 bits a sample; those with 8 are read");
  EXPECT_EQ(code_of(jpeg_with_frame("\xc1", 12, 4, 4, kOneComponent)), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(image_error(jpeg_with_frame("\xc0", 8, 4, 4, "\1\x11\0\2\x11\0"sv)),
            "is a JPEG of 2 components; those of 1, 3 and 4 are read");
}

TEST(BadImage, JpegHeads) {
  const auto reason = [](std::string_view content) { return image_error(content); };
  EXPECT_EQ(reason(jpeg_with_frame("\xc0", 8, 0, 0, kOneComponent)), "is 0 x 0: a picture without pixels");
  EXPECT_EQ(reason(jpeg_with_frame("\xc0", 8, 7, 0, kOneComponent)), "is 7 x 0: a picture without pixels");
  EXPECT_EQ(reason(jpeg_with_frame("\xc0", 8, 1, 65535, kOneComponent)),
            "is 1 x 65535; a side has at most 32768 pixels");
  EXPECT_EQ(reason(jpeg_with_frame("\xc0", 8, 10000, 10000, kOneComponent)),
            "is 10000 x 10000, 100000000 pixels; the limit is 67108864");
  EXPECT_EQ(reason(jpeg_with_frame("\xc0", 8, 4, 4, "\1\x51\0"sv)),
            "is damaged: component 0 has 5 x 1 samples; 1 to 4 are possible");
  EXPECT_EQ(reason(jpeg_with_frame("\xc0", 8, 4, 4, "\1\x20\0"sv)),
            "is damaged: component 0 has 2 x 0 samples; 1 to 4 are possible");
  const std::string good = jpeg_with_frame("\xc0", 8, 4, 4, kOneComponent);
  EXPECT_THAT(reason(str_cat(good.substr(0, 2), good.substr(2, 13), good.substr(2))), HasSubstr("two frame headers"));
  EXPECT_THAT(reason(str_cat("\xff\xd8\xff\xda\0\x08\1\1\0\0\x3f\0"sv)), HasSubstr("a scan before the frame header"));
  EXPECT_THAT(reason("\xff\xd8\xff\xe1\0\1"sv), HasSubstr("has a size of 1"));
  EXPECT_THAT(reason("\xff\xd8\xff\xe1\xff\xff"
                     "Exif\0\0"sv),
              HasSubstr("ends in its head, in a segment of marker 225"));
  EXPECT_THAT(reason("\xff\xd8\xff\xff\xff\xff"sv), HasSubstr("ends in its head, before the first scan"));
  EXPECT_THAT(reason("\xff\xd8\xff\x02"sv), HasSubstr("unknown marker 2"));
  EXPECT_THAT(reason(good), HasSubstr("is damaged at row 0 of 4: ")) << "it has no tables";
}

// The last scan, again and again: each is valid, and costs the whole picture.
std::string jpeg_with_scans(size_t count) {
  const std::string whole = image_fixture("progressive.jpg");
  const size_t last = whole.rfind("\xff\xda");
  std::string content = whole.substr(0, whole.size() - 2);
  for (size_t i = 0; i < count; ++i) content += whole.substr(last, whole.size() - 2 - last);
  return str_cat(content, "\xff\xd9");
}

TEST(BadImage, Scans) {
  const std::string whole = image_fixture("progressive.jpg");  // 10 scans
  EXPECT_EQ(image_error(whole, {.max_scans = 10}), "");
  EXPECT_EQ(image_error(whole, {.max_scans = 9}), "has more than 9 scans");
  EXPECT_EQ(image_error(jpeg_with_scans(90)), "");
  EXPECT_EQ(image_error(jpeg_with_scans(91)), "has more than 100 scans");
  const double start = cpu_seconds();
  EXPECT_EQ(image_error(jpeg_with_scans(100000)), "has more than 100 scans");
  EXPECT_LT(cpu_seconds() - start, 5);
}

// The first scans alone are a picture, if the file says that it ends there.
TEST(BadImage, FirstScans) {
  const std::string whole = image_fixture("progressive.jpg");
  const size_t second = whole.find("\xff\xda", whole.find("\xff\xda") + 2);
  EXPECT_EQ(image_error(str_cat(whole.substr(0, second), "\xff\xd9")), "");
  EXPECT_EQ(image_error(whole.substr(0, second)), "ends early, at row 0 of 27");
}

TEST(BadImage, PngHeads) {
  const std::string data = png_chunk("IDAT", "\x78\x9c\x03\0\0\0\0\1"sv);
  const auto with = [&](const PngHeader& header) { return image_error(str_cat(png_start(header), data)); };
  EXPECT_EQ(with({.width = 0, .height = 0}), "is 0 x 0: a picture without pixels");
  EXPECT_EQ(with({.width = 1, .height = 65535}), "is 1 x 65535; a side has at most 32768 pixels");
  EXPECT_EQ(with({.width = 10000, .height = 10000}), "is 10000 x 10000, 100000000 pixels; the limit is 67108864");
  EXPECT_EQ(with({.width = 0xffffffff, .height = 0xffffffff}),
            "is 4294967295 x 4294967295; a side has at most 32768 pixels");
  for (const auto& [color, depth] :
       {std::pair(2u, 4u), {3u, 16u}, {4u, 1u}, {6u, 2u}, {0u, 3u}, {1u, 8u}, {7u, 8u}, {255u, 255u}}) {
    EXPECT_THAT(with({.bit_depth = depth, .color = color}),
                str_cat("is damaged: color type ", color, " with ", depth, " bits does not exist"));
  }
  EXPECT_THAT(with({.compression = 1}), HasSubstr("compression 1, filter 0, interlace 0"));
  EXPECT_THAT(with({.filter = 1}), HasSubstr("compression 0, filter 1, interlace 0"));
  EXPECT_THAT(with({.interlace = 2}), HasSubstr("compression 0, filter 0, interlace 2"));
  EXPECT_THAT(with({.color = 3}), HasSubstr("its palette is missing"));
  EXPECT_EQ(with({}), "ends early, at row 0 of 4");
}

TEST(BadImage, PngChunks) {
  const std::string start = png_start({});
  EXPECT_EQ(image_error(str_cat(start, big(0x7fffffff, 4), "tEXtnot two gigabytes")), "ends in its tEXt chunk");
  EXPECT_EQ(image_error(str_cat(start, big(0xffffffff, 4), "PLTE\1\2\3")), "ends in its PLTE chunk");
  EXPECT_EQ(image_error(str_cat(start, big(0xffffffff, 4), "IDAT\1\2\3")).substr(0, 23), "is damaged at row 0 of ");
  EXPECT_EQ(image_error(str_cat(start, png_chunk("IEND", ""))), "is damaged: it has no data of a picture");
  EXPECT_EQ(image_error(start), "ends in its head, before the picture's data");
  EXPECT_EQ(image_error(str_cat(start, big(0, 4), "\1\2\3\4")), "is damaged: a chunk has no name");
  EXPECT_EQ(image_error(str_cat(kPngSignature, png_chunk("IDAT", "\1"))), "is damaged: it begins with a chunk IDAT");
  EXPECT_EQ(image_error(str_cat(kPngSignature, png_chunk("IHDR", "\1"))),
            "is damaged: its header has 1 bytes; it takes 13");

  // A wrong checksum counts before the data, of any chunk.
  std::string text = png_chunk("tEXt", "Comment\0none"sv);
  text.back() = static_cast<char>(text.back() ^ 1);
  EXPECT_EQ(image_error(str_cat(start, text)), "is damaged: the checksum of its tEXt chunk is wrong");

  const std::string palette = png_start({.color = 3});
  EXPECT_EQ(image_error(str_cat(palette, png_chunk("PLTE", std::string(771, '\1')))),
            "is damaged: its palette has 257 entries");
  EXPECT_EQ(image_error(str_cat(palette, png_chunk("PLTE", "\1\2\3"), png_chunk("tRNS", std::string(257, '\1')))),
            "is damaged: its tRNS chunk has 257 bytes");
  EXPECT_EQ(image_error(str_cat(start, png_chunk("tRNS", "\1\2\3\4\5"))), "is damaged: its tRNS chunk has 5 bytes");
}

TEST(BadImage, PngData) {
  const auto with = [](std::string_view zlib) { return image_error(str_cat(png_start({}), png_chunk("IDAT", zlib))); };
  EXPECT_THAT(with("not of zlib at all"), StartsWith("is damaged at row 0 of 4: "));
  // A stored block: four rows of 13 bytes, of which the second has a filter 9.
  std::string rows;
  for (int y = 0; y < 4; ++y) rows += str_cat(y == 1 ? '\x09' : '\0', std::string(12, '\x20'));
  const std::string stored = str_cat("\x78\x01\x01", little(rows.size(), 2), little(~rows.size(), 2), rows);
  EXPECT_THAT(with(stored), HasSubstr("at row 1 of 4: bad adaptive filter value"));
}

// A chunk that is longer than what is kept of one: it is passed over, and no memory is taken for it.
TEST(BadImage, LongChunksArePassedOver) {
  const std::string whole = image_fixture("rgb8.png");
  const std::string text = png_chunk("tEXt", std::string(size_t{20} << 20, 'x'));
  const std::string with = str_cat(whole.substr(0, 33), text, whole.substr(33));
  const StatusOr<RgbImage> image = decode_image(with, {.max_chunk_bytes = 1000});
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(*image, decode_image(whole).value());
}

TEST(BadImage, WebpHeads) {
  const std::string canvas = str_cat("VP8X", little(10, 4), little(0, 4), little(16382, 3), little(16382, 3));
  const std::string frame = image_fixture("lossy.webp").substr(12);
  const std::string file = str_cat("RIFF", little(4 + canvas.size() + frame.size(), 4), "WEBP", canvas, frame);
  EXPECT_EQ(image_error(file), "is damaged: its chunks contradict themselves") << "the frame is smaller";
  const std::string animation = str_cat("VP8X", little(10, 4), little(2, 4), little(16382, 3), little(16382, 3));
  const std::string more = str_cat("ANIM", little(6, 4), little(0, 6), "ANMF", little(16 + frame.size(), 4),
                                   little(0, 6), little(32, 3), little(25, 3), little(1, 3), little(0, 1), frame);
  EXPECT_EQ(image_error(str_cat("RIFF", little(4 + animation.size() + more.size(), 4), "WEBP", animation, more)),
            "is 16383 x 16383, 268402689 pixels; the limit is 67108864");
  EXPECT_EQ(image_error("RIFF\xf0\xff\xff\xffWEBPVP8 "), "ends early: it has 16 of 4294967288 bytes");
  EXPECT_EQ(image_error("RIFF\4\0\0\0WEBP"sv), "is damaged: its chunks contradict themselves");
  EXPECT_EQ(image_error("RIFF\0\0\0\0WEBP"sv), "is damaged: its chunks contradict themselves");

  std::string chunks;
  for (int i = 0; i < 20000; ++i) chunks += str_cat("none", little(0, 4));
  EXPECT_EQ(image_error(str_cat("RIFF", little(4 + canvas.size() + chunks.size(), 4), "WEBP", canvas, chunks)),
            "has more than 16384 chunks");
}

TEST(BadImage, WebpData) {
  std::string lossy = image_fixture("lossy.webp");
  std::fill(lossy.begin() + 40, lossy.begin() + 60, '\xff');
  (void)decode_image(lossy);  // a picture or an error: its bits all mean something
  std::string cut = image_fixture("lossless.webp");
  const size_t size = (cut.size() - 20) / 2 & ~size_t{1};
  cut = str_cat("RIFF", little(12 + size, 4), "WEBPVP8L", little(size, 4), cut.substr(20, size));
  EXPECT_THAT(image_error(cut), StartsWith("is damaged: "));
}

}  // namespace
}  // namespace transept
