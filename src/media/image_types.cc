#include "media/image_types.h"

namespace transept {

std::string_view image_format_name(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg: return "JPEG";
    case ImageFormat::kPng: return "PNG";
    case ImageFormat::kWebp: return "WebP";
  }
  return "unknown";
}

}  // namespace transept
