// Draws lines of text as Pillow 12.3 does, to the bit: black on white, 36 pixels high, 5 pixels of margin
// (transformers 5.23, image_processing_pix2struct.py, render_text; ImageDraw.text; _imagingft.c). The layout is
// Pillow's basic one: a character is a glyph, in the order of the text, moved by the font's kern table. Where libraqm
// and FriBidi are installed Pillow takes Raqm's layout instead, which has ligatures and places glyphs at fractions of a
// pixel: other pixels (docs/models.md).
//
// Glyphs are FreeType's, hinted as FT_LOAD_DEFAULT says. Of fonts with TrueType instructions, as Arial, Liberation and
// DejaVu have them, FreeType 2.12 and the 2.14 of Pillow's wheels make the same bits; fonts that FreeType hints itself
// differ by its version.
//
// Lines are untrusted, a font is the operator's. The only public header over FreeType: it exposes no type of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "media/image_types.h"

namespace transept {

// Lines that are laid out: their size is known before memory is taken for pixels. Owned by the caller; used by one
// thread. Independent of the font and the lines that it was made of.
class HeaderDrawing {
 public:
  virtual ~HeaderDrawing() = default;
  HeaderDrawing(const HeaderDrawing&) = delete;
  HeaderDrawing& operator=(const HeaderDrawing&) = delete;

  int32_t width() const { return width_; }  // of the picture, margins included
  int32_t height() const { return height_; }
  // The most memory that draw() takes, its result included.
  size_t draw_bytes() const { return draw_bytes_; }

  // Throws std::bad_alloc.
  virtual RgbImage draw() const = 0;

 protected:
  HeaderDrawing() = default;

  int32_t width_ = 0;
  int32_t height_ = 0;
  size_t draw_bytes_ = 0;
};

// A font file. Owned by what draws with it. Immutable; each drawing opens the font anew, so thread-safe.
class HeaderFont final {
 public:
  static constexpr size_t kMaxFileBytes = size_t{64} << 20;
  static constexpr int32_t kMaxSide = 1 << 15;                // of a drawing, in pixels
  static constexpr int64_t kMaxPixels = int64_t{1} << 26;     // of a drawing
  static constexpr int32_t kMaxGlyphSide = 1 << 12;           // a glyph stays within so many pixels of its origin
  static constexpr size_t kMaxGlyphBytes = size_t{64} << 20;  // of all different glyphs of a drawing

  // Errors, with the path: those of read_file (no such file, no regular file, more than kMaxFileBytes);
  // kInvalidArgument for what FreeType does not take as a font, a font without Unicode's characters or without this
  // height; kNotFound without FreeType; kUnimplemented if the build had no FreeType.
  static StatusOr<std::shared_ptr<const HeaderFont>> load(const std::string& path);

  // Lays out lines; none, or empty ones, take margins and heights of lines alone. Every character is drawn, those that
  // the font lacks as its box: line ends within a line, controls and marks of direction, too. Errors: kInvalidArgument
  // for more than one of the limits above (names both numbers), and glyphs that the font cannot draw;
  // kResourceExhausted without memory. REQUIRES: valid UTF-8.
  StatusOr<std::unique_ptr<HeaderDrawing>> lay_out(std::span<const std::string> lines) const;

 private:
  explicit HeaderFont(std::string bytes) : bytes_(std::move(bytes)) {}

  std::string bytes_;
};

}  // namespace transept
