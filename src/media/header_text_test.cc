// Fonts and what cannot be one; sizes before pixels; any characters. That pixels are Pillow's is shown by
// multimodal/picture_header_test.cc, and on random texts by tests/images/header_differential.py.
#include "media/header_text.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/folder_testing.h"
#include "media/header_font_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class HeaderText : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = testing::test_font();
    if (path.empty()) GTEST_SKIP() << "no font on this device (Debian: fonts-dejavu-core)";
    auto font = HeaderFont::load(path);
    if (absl::IsUnimplemented(font.status()) || absl::IsNotFound(font.status())) {
      GTEST_SKIP() << "no FreeType on this device: " << error_message(font.status());
    }
    ASSERT_TRUE(font.ok()) << font.status();
    font_ = *std::move(font);
  }

  StatusOr<RgbImage> draw(const std::vector<std::string>& lines) const {
    ASSIGN_OR_RETURN(const auto drawing, font_->lay_out(lines));
    RgbImage image = drawing->draw();
    EXPECT_EQ(image.width, drawing->width());
    EXPECT_EQ(image.height, drawing->height());
    EXPECT_GE(drawing->draw_bytes(), image.pixels.size());
    return image;
  }
  std::string refusal(const std::vector<std::string>& lines) const {
    const auto drawing = font_->lay_out(lines);
    EXPECT_EQ(drawing.status().code(), absl::StatusCode::kInvalidArgument) << drawing.status();
    return error_message(drawing.status());
  }
  static std::string load_error(const std::string& path) {
    const auto font = HeaderFont::load(path);
    EXPECT_FALSE(font.ok());
    return error_message(font.status());
  }

  std::shared_ptr<const HeaderFont> font_;
};

int64_t darkness(const RgbImage& image) {
  return std::accumulate(image.pixels.begin(), image.pixels.end(), int64_t{0},
                         [](int64_t sum, uint8_t level) { return sum + 255 - level; });
}

TEST_F(HeaderText, RefusesWhatIsNoFont) {
  const testing::TestFolder folder;
  folder.write("empty", "");
  folder.write("text", "not a font at all");
  std::string cut;
  {
    std::ifstream file(testing::test_font(), std::ios::binary);
    cut.resize(300);
    file.read(cut.data(), 300);
  }
  folder.write("cut", cut);
  for (const char* name : {"empty", "text", "cut"}) {
    EXPECT_THAT(load_error(folder.path() + "/" + name), AllOf(HasSubstr(name), HasSubstr("is not a font"))) << name;
  }
  EXPECT_THAT(load_error(folder.path() + "/none"), HasSubstr("none"));
  EXPECT_THAT(load_error(folder.path()), HasSubstr(folder.path()));
  folder.write("large", "");
  std::filesystem::resize_file(folder.path() + "/large", HeaderFont::kMaxFileBytes + 1);  // sparse
  EXPECT_THAT(load_error(folder.path() + "/large"), AllOf(HasSubstr("large"), HasSubstr("67108864")));
}

TEST_F(HeaderText, ALineIsAsHighAsItsFontSays) {
  const RgbImage one = draw({"A"}).value(), two = draw({"A", "A"}).value(), three = draw({"A", "A", "A"}).value();
  EXPECT_EQ(three.height - two.height, two.height - one.height);
  EXPECT_EQ(darkness(three), 3 * darkness(one));
  EXPECT_EQ(one.width, three.width);
}

TEST_F(HeaderText, KerningMovesGlyphs) {
  const auto advance = [&](const std::string& text) { return draw({text}).value().width; };
  EXPECT_LT(advance(std::string(40, 'A') + std::string(40, 'V')),
            0 + advance(std::string(40, 'A')) + advance(std::string(40, 'V')));
}

TEST_F(HeaderText, NothingIsMargins) {
  const RgbImage none = draw({}).value(), empty = draw({""}).value();
  EXPECT_EQ(none.width, 10);
  EXPECT_EQ(none.height, 10);
  EXPECT_EQ(empty, none);
  EXPECT_EQ(darkness(none), 0);
}

TEST_F(HeaderText, AnyCharacterIsDrawn) {
  const std::string strange[] = {
      std::string(1, '\0'), "\n\r\t\x07", "\u200b\u200f\u202e\u2066\u2069", "\ufeff", "\U0010ffff",
      "\u0301\u0301\u0301", "\u65e5",     "\U0001F44D\U0001F3FD",           "\u00ad", "\u2028"};
  for (const std::string& text : strange) {
    const auto image = draw({text, text});
    EXPECT_TRUE(image.ok()) << image.status();
  }
  // A character that the font lacks has a box.
  EXPECT_GT(darkness(draw({"\U0010ffff"}).value()), 0);
  EXPECT_EQ(draw({"\U0010ffff"}).value(), draw({"\U0010fffe"}).value());
}

TEST_F(HeaderText, TellsTheLimits) {
  EXPECT_THAT(refusal({std::string(5000, 'W')}), HasSubstr("wider than the 32768"));
  EXPECT_THAT(refusal(std::vector<std::string>(2000, "a")),
              AllOf(HasSubstr("a picture of 32 x 7"), HasSubstr("sides of up to 32768")));
  EXPECT_THAT(refusal(std::vector<std::string>(700, std::string(800, 'W'))), HasSubstr("67108864 pixels"));
}

TEST_F(HeaderText, ThreadsDrawTheSame) {
  const std::vector<std::string> lines = {"The quick brown fox", "j\u00fcmps, 1234"};
  const RgbImage expected = draw(lines).value();
  std::vector<std::thread> threads;
  std::array<bool, 4> is_same{};
  for (bool& same : is_same) {
    threads.emplace_back([&, out = &same] {
      *out = true;
      for (int i = 0; i < 20; ++i) *out &= draw(lines).value() == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(std::ranges::all_of(is_same, [](bool same) { return same; }));
}

}  // namespace
}  // namespace transept
