// Any bytes as a safetensors file: parsing must end, stay inside the bytes, and only accept what adds up; and what its
// metadata says of packed matrices must read back as it was understood.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "weights/pack_tag.h"
#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  transept::SafetensorsMetadata metadata;
  const auto tensors = transept::parse_safetensors(bytes, "fuzz.safetensors", &metadata);
  const auto tag = transept::parse_pack_tag(metadata);
  if (tag.ok() && tag->has_value() && **transept::parse_pack_tag(transept::pack_tag_metadata(**tag)) != **tag) {
    std::abort();
  }
  if (!tensors.ok()) return 0;
  size_t total = 0;
  volatile unsigned sum = 0;  // touch every byte of every view
  for (const auto& tensor : *tensors) {
    total += tensor.data.size();
    for (const std::byte b : tensor.data) sum = sum + static_cast<unsigned>(b);
  }
  if (total > size) std::abort();
  return 0;
}
