// What tests/images drives: image_probe white|drop reads names of files on standard input, a line each, and writes a
// line for each: "WIDTH HEIGHT SHA-256-OF-THE-RGB-BYTES", or "error MESSAGE". Not shipped.
#include <cstdio>
#include <iostream>
#include <string>

#include "base/content_digest.h"
#include "base/mmap_file.h"
#include "media/image_reader.h"

namespace transept {
namespace {

StatusOr<RgbImage> decode(const std::string& path, ImageAlpha alpha) {
  ASSIGN_OR_RETURN(const std::string content, read_file(path));
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  ASSIGN_OR_RETURN(const std::unique_ptr<ImageReader> reader, ImageReader::open(bytes));
  return reader->decode(alpha);
}

int run(std::string_view alpha) {
  for (std::string path; std::getline(std::cin, path);) {
    const StatusOr<RgbImage> image = decode(path, alpha == "drop" ? ImageAlpha::kDrop : ImageAlpha::kWhite);
    if (!image.ok()) {
      std::cout << "error " << error_message(image.status()) << '\n';
      continue;
    }
    DigestBuilder digest;
    digest.add_bytes(std::as_bytes(std::span(image->pixels)));
    std::cout << image->width << ' ' << image->height << ' ' << digest_hex(digest.finish()) << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace transept

int main(int argc, char** argv) { return transept::run(argc > 1 ? argv[1] : "white"); }
