// Writes numpy's archives for tests. Header-only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "weights/torch_file_testing.h"

namespace transept::testing {

// A .npy with this header, in version 1 or 2.
inline std::string raw_npy(std::string_view header, std::string_view data, int version = 1) {
  std::string out = str_cat("\x93NUMPY", static_cast<char>(version), '\0');
  out += version == 1 ? number_bytes(static_cast<uint16_t>(header.size()))
                      : number_bytes(static_cast<uint32_t>(header.size()));
  return str_cat(out, header, data);
}

// As numpy and Marian write it. descr: "<f4".
inline std::string npy_bytes(std::string_view descr, const std::vector<int64_t>& shape, std::string_view data) {
  std::string sides;
  for (const int64_t side : shape) sides += str_cat(sides.empty() ? "" : " ", side, ",");
  if (shape.size() > 1) sides.pop_back();
  std::string header = str_cat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", sides, "), }");
  header.append(63 - (10 + header.size()) % 64, ' ');
  return raw_npy(header + "\n", data);
}

// Arrays in the order in which they came.
class NpzWriter {
 public:
  void array(std::string_view name, std::string_view descr, const std::vector<int64_t>& shape, std::string_view data) {
    file(name, npy_bytes(descr, shape, data));
  }
  void file(std::string_view name, std::string npy) {
    entries_.push_back({str_cat(name, ".npy"), std::move(npy), 0, 0});
  }
  // Marian's options, with the 0 at their end.
  void options(std::string_view yaml) {
    const std::string text = str_cat(yaml, '\0');
    array("special:model.yml", "<i1", {std::ssize(text)}, text);
  }
  std::string bytes() const { return zip_bytes(entries_); }

 private:
  std::vector<TestEntry> entries_;
};

}  // namespace transept::testing
