#include "media/header_text.h"

#include "base/input_file.h"
#include "base/strings.h"

#ifdef TRANSEPT_FREETYPE

#include <algorithm>
#include <limits>
#include <new>
#include <unordered_map>
#include <vector>

#include "base/utf8.h"
#include "media/freetype_library.h"

namespace transept {
namespace {

constexpr int kTextSize = 36;  // pixels of the em
constexpr int32_t kMargin = 5;
constexpr int32_t kSpacing = 4;  // between lines

// Of 26.6 coordinates: the nearest pixel (_imagingft.c, PIXEL).
constexpr int64_t pixel_of(int64_t position) { return ((position + 32) & -64) >> 6; }

constexpr uint32_t divided_by_255(uint32_t value) {
  value += 128;
  return ((value >> 8) + value) >> 8;
}

// A glyph at its origin; y points up.
struct Glyph {
  int64_t advance = 0;                                 // 26.6
  int64_t x_min = 0, x_max = 0, y_min = 0, y_max = 0;  // of the outline, in whole pixels around it
  int64_t left = 0, top = 0;                           // of the bitmap
  int64_t width = 0, height = 0;
  std::vector<uint8_t> levels;
};

struct PlacedGlyph {
  uint32_t glyph = 0;   // of the drawing's
  int64_t advance = 0;  // with the kerning behind it
};

// Around the origin of a line's first glyph; y points up.
struct Line {
  std::vector<PlacedGlyph> glyphs;
  int64_t x_min = 0, x_max = 0, y_min = 0, y_max = 0;
  int64_t top = 0;  // in the text
};

// A library and a face of one drawing: FreeType's objects are used by one thread at a time.
class OpenFont final {
 public:
  OpenFont() = default;
  ~OpenFont() {
    if (library_ != nullptr) freetype().FT_Done_FreeType(library_);  // with its faces
  }
  OpenFont(const OpenFont&) = delete;
  OpenFont& operator=(const OpenFont&) = delete;

  // Borrows the bytes. Errors: without the path.
  Status open(const std::string& bytes) {
    const FreetypeLibrary& ft = freetype();
    if (ft.FT_Init_FreeType(&library_) != 0) return resource_exhausted("FreeType does not start");
    const auto* data = reinterpret_cast<const FT_Byte*>(bytes.data());
    if (ft.FT_New_Memory_Face(library_, data, static_cast<FT_Long>(bytes.size()), 0, &face_) != 0) {
      return invalid_argument("is not a font (TrueType, OpenType, Type 1)");
    }
    if (face_->charmap == nullptr || face_->charmap->encoding != FT_ENCODING_UNICODE) {
      return invalid_argument("is a font without Unicode's characters");
    }
    FT_Size_RequestRec size{};
    size.type = FT_SIZE_REQUEST_TYPE_NOMINAL;
    size.width = size.height = kTextSize * 64;
    if (ft.FT_Request_Size(face_, &size) == 0) return ok_status();
    return invalid_argument("is a font without glyphs ", kTextSize, " pixels high");
  }

  FT_Face face() const { return face_; }

 private:
  FT_Library library_ = nullptr;
  FT_Face face_ = nullptr;
};

// The different glyphs of a drawing, each loaded once.
class Glyphs final {
 public:
  explicit Glyphs(FT_Face face) : face_(face) {}

  StatusOr<uint32_t> find(FT_UInt index) {
    const auto [found, is_new] = places_.try_emplace(index, static_cast<uint32_t>(glyphs_.size()));
    if (is_new) {
      ASSIGN_OR_RETURN(Glyph glyph, load(index));
      glyphs_.push_back(std::move(glyph));
    }
    return found->second;
  }

  const Glyph& operator[](uint32_t place) const { return glyphs_[place]; }
  std::vector<Glyph> take() { return std::move(glyphs_); }

 private:
  static Status cannot_draw(FT_UInt index, std::string_view reason) {
    return invalid_argument("the font of --header-font cannot draw glyph ", index, ": ", reason);
  }

  StatusOr<Glyph> load(FT_UInt index) {
    const FreetypeLibrary& ft = freetype();
    if (ft.FT_Load_Glyph(face_, index, FT_LOAD_DEFAULT) != 0) return cannot_draw(index, "FreeType does not load it");
    FT_GlyphSlot slot = face_->glyph;
    Glyph glyph;
    glyph.advance = slot->metrics.horiAdvance;
    FT_Glyph outline = nullptr;
    if (ft.FT_Get_Glyph(slot, &outline) != 0) return cannot_draw(index, "it has no outline");
    FT_BBox box;
    ft.FT_Glyph_Get_CBox(outline, FT_GLYPH_BBOX_PIXELS, &box);
    ft.FT_Done_Glyph(outline);
    const auto is_near = [](int64_t at) { return at >= -HeaderFont::kMaxGlyphSide && at <= HeaderFont::kMaxGlyphSide; };
    if (!is_near(box.xMin) || !is_near(box.xMax) || !is_near(box.yMin) || !is_near(box.yMax) ||
        !is_near(glyph.advance / 64)) {
      return cannot_draw(index, str_cat("it is larger than ", HeaderFont::kMaxGlyphSide, " pixels"));
    }
    glyph.x_min = box.xMin;
    glyph.x_max = box.xMax;
    glyph.y_min = box.yMin;
    glyph.y_max = box.yMax;
    if (ft.FT_Render_Glyph(slot, FT_RENDER_MODE_NORMAL) != 0) return cannot_draw(index, "FreeType does not draw it");
    glyph.left = slot->bitmap_left;
    glyph.top = slot->bitmap_top;
    if (slot->bitmap.buffer != nullptr) RETURN_IF_ERROR(copy_bitmap(index, slot->bitmap, glyph));
    return glyph;
  }

  // In eight bits, the first row on top.
  Status copy_bitmap(FT_UInt index, const FT_Bitmap& bitmap, Glyph& glyph) {
    int bits = 8;
    switch (bitmap.pixel_mode) {
      case FT_PIXEL_MODE_GRAY: break;
      case FT_PIXEL_MODE_MONO: bits = 1; break;
      case FT_PIXEL_MODE_GRAY2: bits = 2; break;
      case FT_PIXEL_MODE_GRAY4: bits = 4; break;
      default: return cannot_draw(index, "it is a picture in colours");
    }
    constexpr unsigned kMost = 2 * HeaderFont::kMaxGlyphSide;
    if (bitmap.width > kMost || bitmap.rows > kMost || !(glyph.left >= -int64_t{kMost} && glyph.left <= kMost) ||
        !(glyph.top >= -int64_t{kMost} && glyph.top <= kMost)) {
      return cannot_draw(index, "its picture is too large");
    }
    const size_t count = size_t{bitmap.width} * bitmap.rows;
    num_bytes_ += count;
    if (num_bytes_ > HeaderFont::kMaxGlyphBytes) {
      return invalid_argument("the text has different glyphs of more than ", HeaderFont::kMaxGlyphBytes, " pixels");
    }
    glyph.width = bitmap.width;
    glyph.height = bitmap.rows;
    glyph.levels.reserve(count);
    const unsigned most = (1u << bits) - 1;
    const uint8_t* row = bitmap.buffer;
    for (unsigned y = 0; y < bitmap.rows; ++y, row += bitmap.pitch) {
      for (unsigned x = 0; x < bitmap.width; ++x) {
        const unsigned first_bit = x * static_cast<unsigned>(bits);
        const unsigned level = row[first_bit / 8] >> (8 - static_cast<unsigned>(bits) - first_bit % 8) & most;
        glyph.levels.push_back(static_cast<uint8_t>(level * (255 / most)));
      }
    }
    return ok_status();
  }

  FT_Face face_;
  std::unordered_map<FT_UInt, uint32_t> places_;
  std::vector<Glyph> glyphs_;
  size_t num_bytes_ = 0;
};

Status too_wide() {
  return invalid_argument("a line of the text is wider than the ", HeaderFont::kMaxSide, " pixels that are supported");
}

// Glyphs in the text's order, with the font's kerning (_imagingft.c, text_layout_fallback). Kerning is counted in
// pixels and added to 26.6 coordinates, as there.
Status place_glyphs(const std::string& text, FT_Face face, Glyphs& glyphs, Line& line) {
  const bool has_kerning = FT_HAS_KERNING(face);
  FT_UInt last = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = read_utf8(std::string_view(text).substr(at));
    at += static_cast<size_t>(step.num_bytes);
    const FT_UInt index = freetype().FT_Get_Char_Index(face, step.code_point);
    ASSIGN_OR_RETURN(const uint32_t glyph, glyphs.find(index));
    FT_Vector delta;
    if (has_kerning && last != 0 && index != 0 &&
        freetype().FT_Get_Kerning(face, last, index, FT_KERNING_DEFAULT, &delta) == 0) {
      line.glyphs.back().advance += std::clamp<int64_t>(pixel_of(delta.x), -HeaderFont::kMaxSide, HeaderFont::kMaxSide);
    }
    line.glyphs.push_back({glyph, glyphs[glyph].advance});
    last = index;
  }
  return ok_status();
}

// The line's box: of its glyphs and of the pen's way (_imagingft.c, bounding_box_and_anchors).
Status measure(const Glyphs& glyphs, Line& line) {
  constexpr int64_t kFarthest = int64_t{HeaderFont::kMaxSide} * 64;
  int64_t position = 0;
  for (const PlacedGlyph& placed : line.glyphs) {
    const Glyph& glyph = glyphs[placed.glyph];
    const int64_t x = pixel_of(position);
    position += placed.advance;
    if (position > kFarthest || position < -kFarthest) return too_wide();
    line.x_max = std::max({line.x_max, pixel_of(position), x + glyph.x_max});
    line.x_min = std::min(line.x_min, x + glyph.x_min);
    line.y_max = std::max(line.y_max, glyph.y_max);
    line.y_min = std::min(line.y_min, glyph.y_min);
  }
  return ok_status();
}

// The line's coverage, [y_max - y_min, x_max - x_min] (_imagingft.c, font_render). Glyphs lie by their bitmaps, which
// can begin elsewhere than their boxes say: what is outside is cut, as there.
std::vector<uint8_t> coverage_of(const Line& line, const std::vector<Glyph>& glyphs) {
  const int64_t width = line.x_max - line.x_min, height = line.y_max - line.y_min;
  std::vector<uint8_t> mask(static_cast<size_t>(width * height));
  int64_t x_min = 0, y_max = 0, position = 0;
  for (const PlacedGlyph& placed : line.glyphs) {
    const Glyph& glyph = glyphs[placed.glyph];
    x_min = std::min(x_min, pixel_of(position) + glyph.left);
    y_max = std::max(y_max, glyph.top);
    position += placed.advance;
  }
  position = -x_min * 64;
  for (const PlacedGlyph& placed : line.glyphs) {
    const Glyph& glyph = glyphs[placed.glyph];
    const int64_t left = pixel_of(position) + glyph.left, top = y_max - glyph.top;
    position += placed.advance;
    const int64_t first = std::max<int64_t>(-left, 0), last = std::min(glyph.width, width - left);
    for (int64_t y = std::max<int64_t>(-top, 0); y < std::min(glyph.height, height - top); ++y) {
      const uint8_t* from = glyph.levels.data() + y * glyph.width;
      uint8_t* to = mask.data() + (top + y) * width + left;
      for (int64_t x = first; x < last; ++x) {
        const uint32_t level = from[x];
        if (level != 0) to[x] = static_cast<uint8_t>(std::min(level + divided_by_255(to[x] * (255 - level)), 255u));
      }
    }
  }
  return mask;
}

class LaidOut final : public HeaderDrawing {
 public:
  // ascender: from the text's top to a line's origin, in pixels. Errors: a limit.
  static StatusOr<std::unique_ptr<HeaderDrawing>> create(std::vector<Line> lines, std::vector<Glyph> glyphs,
                                                         int64_t ascender) {
    std::unique_ptr<LaidOut> made(new LaidOut(std::move(lines), std::move(glyphs), ascender));
    RETURN_IF_ERROR(made->take_size());
    return made;
  }

  RgbImage draw() const override {
    RgbImage image{.width = width_, .height = height_, .pixels = {}};
    image.pixels.assign(static_cast<size_t>(width_) * static_cast<size_t>(height_) * RgbImage::kNumChannels, 255);
    for (const Line& line : lines_) {
      if (line.x_max == line.x_min || line.y_max == line.y_min) continue;
      blacken(line, coverage_of(line, glyphs_), image);
    }
    return image;
  }

 private:
  LaidOut(std::vector<Line> lines, std::vector<Glyph> glyphs, int64_t ascender)
      : lines_(std::move(lines)), glyphs_(std::move(glyphs)), ascender_(ascender) {}

  Status take_size() {
    int64_t right = 0, bottom = 0, most = 0;
    for (const Line& line : lines_) {
      right = std::max(right, line.x_max);
      // Of a line without characters: the text's top.
      bottom = std::max(bottom, line.top + (line.glyphs.empty() ? 0 : ascender_ - line.y_min));
      most = std::max(most, (line.x_max - line.x_min) * (line.y_max - line.y_min));
    }
    const int64_t width = right + 2 * kMargin, height = bottom + 2 * kMargin;
    if (width > HeaderFont::kMaxSide || height > HeaderFont::kMaxSide || width * height > HeaderFont::kMaxPixels ||
        most > HeaderFont::kMaxPixels) {
      return invalid_argument("the text would be a picture of ", width, " x ", height, " pixels: sides of up to ",
                              HeaderFont::kMaxSide, " and at most ", HeaderFont::kMaxPixels, " pixels are supported");
    }
    width_ = static_cast<int32_t>(width);
    height_ = static_cast<int32_t>(height);
    draw_bytes_ = static_cast<size_t>(width * height * RgbImage::kNumChannels + most);
    return ok_status();
  }

  // Black through the coverage (libImaging, Paste.c, fill_mask_L).
  void blacken(const Line& line, const std::vector<uint8_t>& mask, RgbImage& image) const {
    const int64_t mask_width = line.x_max - line.x_min, mask_height = line.y_max - line.y_min;
    const int64_t left = kMargin + line.x_min, top = kMargin + line.top + ascender_ - line.y_max;
    const int64_t first = std::max<int64_t>(-left, 0), last = std::min(mask_width, width_ - left);
    for (int64_t y = std::max<int64_t>(-top, 0); y < std::min(mask_height, height_ - top); ++y) {
      const uint8_t* from = mask.data() + y * mask_width;
      uint8_t* to = image.pixels.data() + ((top + y) * width_ + left + first) * RgbImage::kNumChannels;
      for (int64_t x = first; x < last; ++x) {
        for (int32_t channel = 0; channel < RgbImage::kNumChannels; ++channel, ++to) {
          *to = static_cast<uint8_t>(divided_by_255(*to * (255u - from[x])));
        }
      }
    }
  }

  std::vector<Line> lines_;
  std::vector<Glyph> glyphs_;
  int64_t ascender_;
};

StatusOr<std::unique_ptr<HeaderDrawing>> lay_out_lines(std::span<const std::string> texts, const OpenFont& font) {
  Glyphs glyphs(font.face());
  const int64_t ascender = pixel_of(font.face()->size->metrics.ascender);
  if (ascender > HeaderFont::kMaxGlyphSide || ascender < -HeaderFont::kMaxGlyphSide) return too_wide();
  Line letter;  // lines are as far apart as its box is high (ImageText._split)
  RETURN_IF_ERROR(place_glyphs("A", font.face(), glyphs, letter));
  RETURN_IF_ERROR(measure(glyphs, letter));
  const int64_t line_height = ascender - letter.y_min + kSpacing;
  std::vector<Line> lines;
  for (const std::string& text : texts) {
    Line line;
    line.top = static_cast<int64_t>(lines.size()) * line_height;
    RETURN_IF_ERROR(place_glyphs(text, font.face(), glyphs, line));
    RETURN_IF_ERROR(measure(glyphs, line));
    lines.push_back(std::move(line));
  }
  return LaidOut::create(std::move(lines), glyphs.take(), ascender);
}

}  // namespace

StatusOr<std::shared_ptr<const HeaderFont>> HeaderFont::load(const std::string& path) {
  RETURN_IF_ERROR(load_freetype());
  ASSIGN_OR_RETURN(std::string bytes, read_file(path, kMaxFileBytes));
  OpenFont font;
  if (const Status opened = font.open(bytes); !opened.ok()) {
    return absl::Status(opened.code(), str_cat(path, " ", error_message(opened)));
  }
  return std::shared_ptr<const HeaderFont>(new HeaderFont(std::move(bytes)));
}

StatusOr<std::unique_ptr<HeaderDrawing>> HeaderFont::lay_out(std::span<const std::string> lines) const {
  try {
    OpenFont font;
    RETURN_IF_ERROR(font.open(bytes_));
    return lay_out_lines(lines, font);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory to draw a text");
  }
}

}  // namespace transept

#else  // TRANSEPT_FREETYPE

namespace transept {

StatusOr<std::shared_ptr<const HeaderFont>> HeaderFont::load(const std::string& /*path*/) {
  return unimplemented("text cannot be drawn: this build has no FreeType (libfreetype-dev)");
}

StatusOr<std::unique_ptr<HeaderDrawing>> HeaderFont::lay_out(std::span<const std::string> /*lines*/) const {
  return unimplemented("text cannot be drawn: this build has no FreeType (libfreetype-dev)");
}

}  // namespace transept

#endif
