// Any text as a question: lines of at most 80 characters, and a picture that grows by them, or an error with a message.
// The first two bytes say the picture's sides. Without a font (media/header_font_testing.h) lines alone are looked at.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/utf8.h"
#include "media/header_font_testing.h"
#include "multimodal/picture_header.h"
#include "multimodal/python_wrap.h"

namespace {

constexpr size_t kLineLength = 80;

void require(bool condition) {
  if (!condition) std::abort();
}

size_t num_characters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  static const std::shared_ptr<const HeaderFont> font = [] {
    const auto loaded = HeaderFont::load(transept::testing::test_font());
    return loaded.ok() ? *loaded : nullptr;
  }();
  if (size < 2) return 0;
  const std::string text = sanitize_utf8(std::string_view(reinterpret_cast<const char*>(data) + 2, size - 2));
  for (const std::string& line : python_wrap(text, kLineLength)) {
    require(num_characters(line) <= kLineLength && !line.empty() && is_valid_utf8(line));
  }
  if (font == nullptr) return 0;
  // A narrow picture is enlarged to the question's width, which takes most of a run's time: one width in 256 is narrow.
  RgbImage picture{data[0] == 0 ? 1 : 128 + data[0], 1 + data[1] / 8, {}};
  picture.pixels.resize(static_cast<size_t>(picture.width) * static_cast<size_t>(picture.height) * 3, data[0]);
  const int32_t width = picture.width;
  const auto whole = picture_below(text, std::move(picture), *font, {}, detect_isa());
  if (!whole.ok()) {
    require(!whole.status().message().empty());
    return 0;
  }
  require(whole->width >= width && whole->height >= 2);
  require(whole->pixels.size() == size_t{3} * static_cast<size_t>(whole->width) * static_cast<size_t>(whole->height));
  return 0;
}
