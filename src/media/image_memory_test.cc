// What decoding takes of memory, counted at malloc: never more than ImageInfo says, for any file; and what happens
// where there is none. Sanitizers have a malloc of their own, so these run without.
#include <gmock/gmock.h>

#include "base/allocation_count_testing.h"
#include "media/image_encoders_testing.h"
#include "media/image_testing.h"
#include "media/webp_bits_testing.h"

#if !defined(TRANSEPT_SANITIZED)

#include <malloc.h>

namespace {

// Of the calling thread, while it counts.
struct Heap {
  bool is_counting = false;
  size_t bytes = 0;
  size_t most_bytes = 0;
  size_t min_failing_bytes = 0;
  int64_t num_calls = 0;  // of so many bytes
  int64_t failing_call = -1;
};
thread_local Heap t_heap;

bool fails_now(size_t bytes) {
  return t_heap.is_counting && bytes >= t_heap.min_failing_bytes && t_heap.num_calls++ == t_heap.failing_call;
}

void* counted(void* memory) {
  if (!t_heap.is_counting || memory == nullptr) return memory;
  t_heap.bytes += malloc_usable_size(memory);
  t_heap.most_bytes = std::max(t_heap.most_bytes, t_heap.bytes);
  return memory;
}

void forget(void* memory) {
  if (t_heap.is_counting && memory != nullptr) t_heap.bytes -= malloc_usable_size(memory);
}

}  // namespace

// glibc's own, by their other names.
extern "C" {
void* __libc_malloc(size_t size);                 // NOLINT(bugprone-reserved-identifier): the C library's own
void* __libc_calloc(size_t count, size_t size);   // NOLINT(bugprone-reserved-identifier): the C library's own
void* __libc_realloc(void* memory, size_t size);  // NOLINT(bugprone-reserved-identifier): the C library's own
void __libc_free(void* memory);                   // NOLINT(bugprone-reserved-identifier): the C library's own

void* malloc(size_t size) { return fails_now(size) ? nullptr : counted(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) {
  return fails_now(count * size) ? nullptr : counted(__libc_calloc(count, size));
}
void* realloc(void* memory, size_t size) {
  if (fails_now(size)) return nullptr;
  forget(memory);
  return counted(__libc_realloc(memory, size));
}
void free(void* memory) {
  forget(memory);
  __libc_free(memory);
}
}

namespace transept {
namespace {

struct Decoded {
  StatusOr<RgbImage> image;
  size_t most_bytes = 0;
  size_t kept_bytes = 0;  // at the end, with the image
};

Decoded decode_counted(ImageReader& reader, ImageAlpha alpha = ImageAlpha::kWhite, Heap heap = {}) {
  t_heap = heap;
  t_heap.is_counting = true;
  Decoded decoded{reader.decode(alpha)};
  t_heap.is_counting = false;
  decoded.most_bytes = t_heap.most_bytes;
  decoded.kept_bytes = t_heap.bytes;
  return decoded;
}

std::unique_ptr<ImageReader> open_image(std::string_view content) {
  auto reader = ImageReader::open(bytes_of_text(content));
  EXPECT_TRUE(reader.ok()) << reader.status();
  return std::move(reader).value();
}

void expect_bounded(std::string_view content, double slack = 0) {
  for (const ImageAlpha alpha : {ImageAlpha::kWhite, ImageAlpha::kDrop}) {
    const std::unique_ptr<ImageReader> reader = open_image(content);
    const size_t bound = reader->info().decode_bytes;
    const Decoded decoded = decode_counted(*reader, alpha);
    EXPECT_LE(decoded.most_bytes, bound);
    if (slack == 0 || alpha == ImageAlpha::kDrop) continue;
    ASSERT_TRUE(decoded.image.ok()) << decoded.image.status();
    EXPECT_LE(static_cast<double>(bound), slack * static_cast<double>(decoded.most_bytes)) << decoded.most_bytes;
  }
}

TEST(ImageMemory, FixturesStayBelowTheBound) {
  for (const std::string& name : image_fixtures()) {
    SCOPED_TRACE(name);
    expect_bounded(image_fixture(name));
  }
}

// And the bound is near to what is taken, so that admission does not refuse what would fit.
TEST(ImageMemory, LargePicturesAreNearTheBound) {
  const RgbImage photo = make_photo(1501, 1003);
  for (const auto& [h, v] : {std::pair(1, 1), std::pair(2, 1), std::pair(2, 2), std::pair(1, 2), std::pair(4, 2)}) {
    for (const bool is_progressive : {false, true}) {
      SCOPED_TRACE(::testing::Message() << h << " x " << v << (is_progressive ? ", progressive" : ""));
      expect_bounded(encode_jpeg(photo, {.h_samples = h, .v_samples = v, .is_progressive = is_progressive}), 1.15);
    }
  }
  expect_bounded(encode_jpeg(photo, {.is_grey = true}), 1.15);
  expect_bounded(encode_png(photo), 1.15);
  const RgbImage smaller = make_photo(501, 403);  // libwebp's encoder takes its time
  for (const WebpKind kind : {WebpKind::kLossy, WebpKind::kLossless, WebpKind::kLossyAlpha, WebpKind::kLosslessAlpha}) {
    SCOPED_TRACE(static_cast<int>(kind));
    expect_bounded(encode_webp(smaller, kind), 1.5);
  }
}

TEST(ImageMemory, TurnedPicturesToo) {
  const std::string jpeg = encode_jpeg(make_photo(1501, 1003));
  const std::string exif = str_cat(std::string("Exif\0\0II*\0", 10), little(8, 4), little(1, 2), little(0x112, 2),
                                   little(3, 2), little(1, 4), little(6, 4), little(0, 4));
  const std::string turned = str_cat(jpeg.substr(0, 2), "\xff\xe1", big(exif.size() + 2, 2), exif, jpeg.substr(2));
  ASSERT_EQ(image_info(turned).orientation, 6);
  expect_bounded(turned, 1.15);
}

// Many small codes, or few that take the most: the count of groups is in the file's middle.
TEST(ImageMemory, CodesOfLosslessWebp) {
  for (const uint32_t num_groups : {1u, 500u, 1000u, 1001u, 20000u}) {
    SCOPED_TRACE(num_groups);
    const std::string file = webp_file(webp_with_groups(num_groups, 600, 600), 600, 600);
    const std::unique_ptr<ImageReader> reader = open_image(file);
    const Decoded decoded = decode_counted(*reader);
    EXPECT_LE(decoded.most_bytes, reader->info().decode_bytes);
    if (num_groups == 1000) {
      EXPECT_GT(decoded.most_bytes, size_t{11} << 20) << decoded.image.status();
    }
  }
}

// Files whose data end, or mean nothing, take no more than the good ones.
TEST(ImageMemory, DamagedFilesStayBelowTheBound) {
  for (const std::string& name : image_fixtures()) {
    SCOPED_TRACE(name);
    const std::string content = image_fixture(name);
    for (size_t at = 20; at < content.size(); at += 29) {
      std::string damaged = content;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      const auto reader = ImageReader::open(bytes_of_text(damaged));
      if (!reader.ok()) continue;
      const Decoded decoded = decode_counted(**reader);
      ASSERT_LE(decoded.most_bytes, (*reader)->info().decode_bytes) << at;
    }
  }
}

// Each of its allocations fails once: an error, nothing lost. libwebp tells few of its failures from damage, and 1.2.4
// does not survive that of a code's table (ReadHuffmanCodeLengths frees what it did not set): there, larger ones fail.
TEST(ImageMemory, WithoutMemory) {
  for (const std::string_view name :
       {"photo_420.jpg", "progressive.jpg", "cmyk.jpg", "turned_6.jpg", "rgb8.png", "palette8_interlaced.png",
        "lossy_alpha.webp", "lossless_few_colors.webp", "turned_6.webp"}) {
    SCOPED_TRACE(name);
    const std::string content = image_fixture(name);
    const RgbImage whole = decode_image(content).value();
    int num_failed = 0;
    for (int64_t call = 0;; ++call) {
      ASSERT_LT(call, 1000);
      const std::unique_ptr<ImageReader> reader = open_image(content);
      const size_t min_bytes = name.ends_with(".webp") ? 1500 : 0;
      Decoded decoded =
          decode_counted(*reader, ImageAlpha::kWhite, {.min_failing_bytes = min_bytes, .failing_call = call});
      if (t_heap.num_calls <= call) break;  // it needs no more
      if (decoded.image.ok()) {
        EXPECT_EQ(*decoded.image, whole) << call;
        continue;
      }
      ++num_failed;
      if (!name.ends_with(".webp")) {
        EXPECT_EQ(decoded.image.status().code(), absl::StatusCode::kResourceExhausted) << decoded.image.status();
      }
      EXPECT_LT(decoded.kept_bytes, 1000u) << call << ": the message, and nothing else";
    }
    EXPECT_GE(num_failed, 3);
  }
}

TEST(ImageMemory, TheErrorNamesTheSize) {
  const std::string content = image_fixture("rgb8.png");
  const std::unique_ptr<ImageReader> reader = open_image(content);
  testing::fail_next_allocation(3 * 19 * 14);
  const StatusOr<RgbImage> image = reader->decode();
  EXPECT_TRUE(testing::has_failed_allocation());
  EXPECT_EQ(image.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(error_message(image.status()), "is 19 x 14: no memory for its pixels");
}

// Opening keeps next to nothing: heads only.
TEST(ImageMemory, OpeningTakesLittle) {
  const std::string contents[] = {encode_jpeg(make_photo(900, 700)), encode_png(make_photo(900, 700)),
                                  encode_webp(make_photo(900, 700), WebpKind::kLosslessAlpha)};
  for (const std::string& content : contents) {
    t_heap = {.is_counting = true};
    const auto reader = ImageReader::open(bytes_of_text(content));
    t_heap.is_counting = false;
    EXPECT_TRUE(reader.ok());
    EXPECT_LT(t_heap.most_bytes, 8000u);
  }
}

}  // namespace
}  // namespace transept

#endif  // !TRANSEPT_SANITIZED
