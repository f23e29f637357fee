// The font that tests draw with: Debian's fonts-dejavu-core, or TRANSEPT_TEST_FONT. Tests are skipped without it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace transept::testing {

// The path; "": it is not there.
inline std::string test_font() {
  const char* elsewhere = std::getenv("TRANSEPT_TEST_FONT");
  const std::string path = elsewhere != nullptr ? elsewhere : "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) ? path : "";
}

}  // namespace transept::testing
