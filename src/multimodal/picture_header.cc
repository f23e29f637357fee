#include "multimodal/picture_header.h"

#include <algorithm>

#include "base/strings.h"
#include "multimodal/image_pixels.h"
#include "multimodal/python_strip.h"
#include "multimodal/python_wrap.h"

namespace transept {
namespace {

constexpr size_t kLineLength = 80;
constexpr int64_t kMaxPixels = int64_t{1} << 26;

int64_t bytes_of(const ImageSize& size) { return size.height * size.width * RgbImage::kNumChannels; }

// At another width, in proportion: int() of Python over quotients in double precision.
ImageSize at_width(const ImageSize& size, int64_t width) {
  const double scale = static_cast<double>(width) / static_cast<double>(size.width);
  return {static_cast<int64_t>(static_cast<double>(size.height) * scale), width};
}

}  // namespace

bool is_empty_question(std::string_view question) { return python_strip(question).empty(); }

StatusOr<RgbImage> picture_below(std::string_view question, RgbImage picture, const HeaderFont& font,
                                 const std::function<Status(int64_t bytes)>& charge, Isa isa) {
  if (question.size() > kMaxQuestionBytes) {
    return invalid_argument("the question has ", question.size(), " bytes: at most ", kMaxQuestionBytes,
                            " are drawn above a picture");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<HeaderDrawing> drawing, font.lay_out(python_wrap(question, kLineLength)));
  const ImageSize drawn{drawing->height(), drawing->width()}, given = size_of(picture);
  const int64_t width = std::max(drawn.width, given.width);
  const ImageSize header = at_width(drawn, width), below = at_width(given, width);
  const ImageSize whole{header.height + below.height, width};
  if (whole.height > kMaxImageSide || whole.width > kMaxImageSide || whole.height * whole.width > kMaxPixels) {
    return invalid_argument("the picture of ", given.width, " x ", given.height, " pixels would become one of ",
                            whole.width, " x ", whole.height, " with its question: sides of up to ", kMaxImageSide,
                            " and at most ", kMaxPixels, " pixels are supported");
  }
  if (charge) {
    RETURN_IF_ERROR(charge(bytes_of(given) + static_cast<int64_t>(drawing->draw_bytes()) + bytes_of(header) +
                           bytes_of(below) + bytes_of(whole)));
  }
  RgbImage out{.width = static_cast<int32_t>(whole.width), .height = static_cast<int32_t>(whole.height), .pixels = {}};
  out.pixels.reserve(static_cast<size_t>(bytes_of(whole)));
  ASSIGN_OR_RETURN(const RgbImage top, resized(drawing->draw(), header, {}, isa));
  out.pixels.insert(out.pixels.end(), top.pixels.begin(), top.pixels.end());
  ASSIGN_OR_RETURN(const RgbImage bottom, resized(std::move(picture), below, {}, isa));
  out.pixels.insert(out.pixels.end(), bottom.pixels.begin(), bottom.pixels.end());
  return out;
}

}  // namespace transept
