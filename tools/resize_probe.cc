// src/media/resize.h on standard input and output: what tests/images/resize_differential.py drives. Not shipped.
// A request is a line, then the picture's bytes:
//   resize WIDTH HEIGHT OUT_WIDTH OUT_HEIGHT FILTER GAP|- LEFT TOP RIGHT BOTTOM|- - - - ISA
//   reduce WIDTH HEIGHT FACTOR_X FACTOR_Y
// An answer is "ok BYTES", then the bytes, or "error MESSAGE".
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "media/resize.h"

namespace transept {
namespace {

StatusOr<RgbImage> resize_as_told(std::istringstream& words, const RgbImage& image) {
  int32_t width = 0, height = 0, filter = 0;
  std::string gap, left, top, right, bottom, isa_name;
  words >> width >> height >> filter >> gap >> left >> top >> right >> bottom >> isa_name;
  ASSIGN_OR_RETURN(const Isa isa, parse_isa(isa_name));
  ResizeOptions options;
  options.filter = static_cast<ResizeFilter>(filter);
  if (gap != "-") options.reducing_gap = std::stod(gap);
  if (left != "-") options.box = {std::stod(left), std::stod(top), std::stod(right), std::stod(bottom)};
  return resize(image, width, height, options, isa);
}

StatusOr<RgbImage> answer(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  RgbImage image;
  words >> verb >> image.width >> image.height;
  image.pixels.resize(static_cast<size_t>(image.width) * static_cast<size_t>(image.height) * 3);
  std::cin.read(reinterpret_cast<char*>(image.pixels.data()), static_cast<std::streamsize>(image.pixels.size()));
  if (verb == "resize") return resize_as_told(words, image);
  int32_t factor_x = 0, factor_y = 0;
  words >> factor_x >> factor_y;
  return reduce(image, factor_x, factor_y);
}

}  // namespace
}  // namespace transept

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const auto image = transept::answer(line);
    if (image.ok()) {
      std::cout << "ok " << image->pixels.size() << '\n';
      std::cout.write(reinterpret_cast<const char*>(image->pixels.data()),
                      static_cast<std::streamsize>(image->pixels.size()));
    } else {
      std::cout << "error " << image.status().message() << '\n';
    }
    std::cout.flush();
  }
  return 0;
}
