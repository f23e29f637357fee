// Pix2Struct's picture below its question (transformers 5.23, image_processing_pix2struct.py, render_header): the text
// in lines of at most 80 characters, drawn by media/header_text.h; the narrower of drawing and picture enlarged to the
// width of the other, as Pillow 12 resizes, and the drawing laid on top. A function: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/isa.h"
#include "base/status.h"
#include "media/header_text.h"
#include "media/image_types.h"

namespace transept {

inline constexpr size_t kMaxQuestionBytes = size_t{64} << 10;

// Whether nothing would be drawn: white space alone.
bool is_empty_question(std::string_view question);

// `charge` is told how many bytes the picture, the drawing and the result take together, before they are taken; empty:
// they are not counted. Errors: kInvalidArgument for a question of more than kMaxQuestionBytes, a result of more than
// kMaxImageSide or 2^26 pixels; those of HeaderFont::lay_out and of `charge`. May throw std::bad_alloc. REQUIRES: valid
// UTF-8.
StatusOr<RgbImage> picture_below(std::string_view question, RgbImage picture, const HeaderFont& font,
                                 const std::function<Status(int64_t bytes)>& charge, Isa isa);

}  // namespace transept
