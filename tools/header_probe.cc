// src/multimodal/picture_header.h on standard input and output: what tests/images/header_differential.py drives. Not
// shipped.
//   header_probe FONT
// A request is a line, then the question's bytes and the picture's:
//   wrap BYTES                    the answer is the lines, each with a line end behind it
//   below BYTES WIDTH HEIGHT ISA  the answer is the picture below its question: "WIDTH HEIGHT\n", then the pixels
// An answer is "ok BYTES", then the bytes, or "error MESSAGE".
#include <iostream>
#include <sstream>
#include <string>

#include "multimodal/picture_header.h"
#include "multimodal/python_wrap.h"

namespace transept {
namespace {

std::string read_bytes(size_t count) {
  std::string bytes(count, '\0');
  std::cin.read(bytes.data(), static_cast<std::streamsize>(count));
  return bytes;
}

StatusOr<std::string> answer(const std::string& line, const HeaderFont& font) {
  constexpr size_t kLineLength = 80;
  std::istringstream words(line);
  std::string verb, isa_name, out;
  size_t num_bytes = 0;
  words >> verb >> num_bytes;
  const std::string question = read_bytes(num_bytes);
  if (verb == "wrap") {
    for (const std::string& text : python_wrap(question, kLineLength)) out += str_cat(text, "\n");
    return out;
  }
  RgbImage image;
  words >> image.width >> image.height >> isa_name;
  const std::string pixels = read_bytes(static_cast<size_t>(image.width) * static_cast<size_t>(image.height) * 3);
  image.pixels.assign(pixels.begin(), pixels.end());
  ASSIGN_OR_RETURN(const Isa isa, parse_isa(isa_name));
  ASSIGN_OR_RETURN(const RgbImage whole, picture_below(question, std::move(image), font, {}, isa));
  return str_cat(whole.width, " ", whole.height, "\n", std::string(whole.pixels.begin(), whole.pixels.end()));
}

}  // namespace
}  // namespace transept

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const auto font = transept::HeaderFont::load(argc == 2 ? argv[1] : "");
  if (!font.ok()) {
    std::cerr << font.status().message() << '\n';
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto made = transept::answer(line, **font);
    if (made.ok()) {
      std::cout << "ok " << made->size() << '\n' << *made;
    } else {
      std::cout << "error " << made.status().message() << '\n';
    }
    std::cout.flush();
  }
  return 0;
}
