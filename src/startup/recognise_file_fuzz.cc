// Any bytes under any name: telling what they are must end and stay inside them. Input: a name up to a line end, then
// the file.
#include <cstdint>
#include <span>
#include <string_view>

#include "startup/recognise_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\n');
  if (end == std::string_view::npos) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  volatile size_t sum = 0;
  if (const auto file = transept::recognise_bytes(bytes.subspan(end + 1), input.substr(0, end))) {
    sum = sum + file->what.size() + file->original.size();
  }
  return 0;
}
