// Any bytes as a zip archive: parsing must end, and entries lie inside the bytes, apart from each other.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "weights/zip_directory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto entries = transept::read_zip_directory(bytes);
  if (!entries.ok()) return 0;
  const std::byte* free = bytes.data();
  volatile unsigned sum = 0;  // touch every byte of every view
  for (const transept::ZipEntry& entry : *entries) {
    if (entry.data.data() < free) std::abort();
    free = entry.data.data() + entry.data.size();
    for (const std::byte b : entry.data) sum = sum + static_cast<unsigned>(b);
    for (const char c : entry.name) sum = sum + static_cast<unsigned>(c);
  }
  if (free > bytes.data() + size) std::abort();
  return 0;
}
