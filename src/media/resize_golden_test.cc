// ../shared/golden/vision/resize.jsonl: Pillow's resizes of the pictures there, by the digest of their bytes.
#include <gmock/gmock.h>

#include <filesystem>

#include "base/content_digest.h"
#include "media/image_reader.h"
#include "media/media_testing.h"
#include "media/resize.h"

namespace transept {
namespace {

StatusOr<RgbImage> decoded(const std::string& path) {
  const std::string bytes = file_text(path);
  ASSIGN_OR_RETURN(const auto reader,
                   ImageReader::open({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  return reader->decode();
}

ResizeOptions options_of(const Json& row) {
  ResizeOptions options;
  const std::string& name = row.find("filter")->as_string();
  int number = 0;
  while (number < kNumResizeFilters && resize_filter_name(static_cast<ResizeFilter>(number)) != name) ++number;
  EXPECT_LT(number, kNumResizeFilters) << name;
  options.filter = static_cast<ResizeFilter>(number);
  const Json* gap = row.find("reducing_gap");
  if (gap != nullptr && gap->is_number()) options.reducing_gap = gap->as_double();
  return options;
}

TEST(ResizeGolden, GivesThePixelsOfPillow) {
  const std::string table = shared_path("golden/vision/resize.jsonl");
  if (!std::filesystem::exists(table)) GTEST_SKIP() << "no ../shared: " << table;
  const std::vector<Json> rows = read_jsonl(table);
  EXPECT_GE(rows.size(), 70u);
  for (const Json& row : rows) {
    SCOPED_TRACE(row.dump().substr(0, 150));
    const auto image = decoded(shared_path(row.find("image")->as_string()));
    ASSERT_TRUE(image.ok()) << image.status();
    const Json::Array& size = row.find("size")->as_array();
    for (const Isa isa : present_isas()) {
      const auto resized = resize(*image, static_cast<int32_t>(size[0].as_int()),
                                  static_cast<int32_t>(size[1].as_int()), options_of(row), isa);
      ASSERT_TRUE(resized.ok()) << resized.status();
      DigestBuilder digest;
      digest.add_bytes(std::as_bytes(std::span(resized->pixels)));
      EXPECT_EQ(digest_hex(digest.finish()), row.find("expect")->find("sha256")->as_string()) << isa_name(isa);
    }
  }
}

}  // namespace
}  // namespace transept
