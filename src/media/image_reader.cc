#include "media/image_reader.h"

#include <new>

#include "media/image_sniff.h"
#include "media/jpeg_image.h"
#include "media/png_image.h"
#include "media/webp_image.h"

namespace transept {
namespace {

template <typename Image>
class ReaderOf final : public ImageReader {
 public:
  explicit ReaderOf(std::unique_ptr<Image> image) : image_(std::move(image)) { info_ = image_->info(); }

  // Memory for pixels is asked for by a file: without it the file is refused, and not the program ended.
  StatusOr<RgbImage> decode(ImageAlpha alpha) override {
    try {
      return image_->decode(alpha);
    } catch (const std::bad_alloc&) {
      return resource_exhausted("is ", info_.width, " x ", info_.height, ": no memory for its pixels");
    }
  }

 private:
  std::unique_ptr<Image> image_;
};

template <typename Image>
StatusOr<std::unique_ptr<ImageReader>> open_as(std::span<const uint8_t> bytes, const ImageLimits& limits) {
  ASSIGN_OR_RETURN(std::unique_ptr<Image> image, Image::open(bytes, limits));
  return std::make_unique<ReaderOf<Image>>(std::move(image));
}

}  // namespace

StatusOr<std::unique_ptr<ImageReader>> ImageReader::open(std::span<const uint8_t> bytes, const ImageLimits& limits) {
  ASSIGN_OR_RETURN(const ImageFormat format, sniff_image(bytes));
  switch (format) {
    case ImageFormat::kJpeg: return open_as<JpegImage>(bytes, limits);
    case ImageFormat::kPng: return open_as<PngImage>(bytes, limits);
    case ImageFormat::kWebp: return open_as<WebpImage>(bytes, limits);
  }
  return invalid_argument("is no image of a known format");
}

}  // namespace transept
