// What tests/images and bench/vision.py drive. Reads names of files on standard input, a line each, and writes a line
// for each, or "error MESSAGE":
//   image_probe white|drop   WIDTH HEIGHT SHA-256-OF-THE-RGB-BYTES
//   image_probe time RUNS    the least milliseconds of so many runs, from the file's bytes to 384 x 384 pixels
//   (bilinear)
// Not shipped.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/content_digest.h"
#include "base/mmap_file.h"
#include "media/image_reader.h"
#include "media/resize.h"

namespace transept {
namespace {

StatusOr<RgbImage> decode(const std::string& path, ImageAlpha alpha) {
  ASSIGN_OR_RETURN(const std::string content, read_file(path));
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  ASSIGN_OR_RETURN(const std::unique_ptr<ImageReader> reader, ImageReader::open(bytes));
  return reader->decode(alpha);
}

StatusOr<double> least_milliseconds(const std::string& path, int runs) {
  ASSIGN_OR_RETURN(const std::string content, read_file(path));
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  double least = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(const std::unique_ptr<ImageReader> reader, ImageReader::open(bytes));
    ASSIGN_OR_RETURN(const RgbImage image, reader->decode());
    RETURN_IF_ERROR(resize(image, 384, 384, {.filter = ResizeFilter::kBilinear}, detect_isa()).status());
    least =
        std::min(least, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
}

int run_timed(int runs) {
  for (std::string path; std::getline(std::cin, path);) {
    const StatusOr<double> least = least_milliseconds(path, runs);
    if (least.ok()) {
      std::cout << *least << '\n';
    } else {
      std::cout << "error " << error_message(least.status()) << '\n';
    }
  }
  return 0;
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

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "time") return transept::run_timed(std::max(1, std::atoi(argv[2])));
  return transept::run(argc > 1 ? argv[1] : "white");
}
