// A part [begin, end) of a text, in bytes. A value.
#pragma once

#include <cstddef>
#include <string_view>

namespace transept {

struct TextRange {
  size_t begin = 0, end = 0;

  size_t size() const { return end - begin; }
  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
  friend bool operator==(const TextRange&, const TextRange&) = default;
};

}  // namespace transept
