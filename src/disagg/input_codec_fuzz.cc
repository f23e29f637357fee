// Any bytes as an input: refused, or an item whose bytes are these.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "disagg/input_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto item = decode_input(bytes);
  if (!item.ok()) return 0;
  std::vector<std::byte> again;
  encode_input(*item, again);
  if (!std::ranges::equal(again, bytes)) std::abort();
  return 0;
}
