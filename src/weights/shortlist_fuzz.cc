// Any bytes as a shortlist: reading must end, stay inside the bytes, and give sets that are within the vocabulary and
// ascend. The checksum is set right first, or nothing behind it would be reached.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "weights/shortlist.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> file(data, data + size);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(file));
  if (size >= 16) {
    const uint64_t sum = transept::shortlist_checksum(bytes.subspan(16));
    std::memcpy(file.data() + 8, &sum, sizeof sum);
  }
  const auto list =
      transept::Shortlist::parse(bytes, "lex.bin", {.source = 50, .target = 60, .is_shared = size % 2 == 0});
  if (!list.ok()) return 0;
  std::vector<int32_t> source, ids;
  for (int32_t id = -1; id <= 51; ++id) source.push_back(id);
  list->set_of(source, {}, ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= 60 || (i > 0 && ids[i] <= ids[i - 1])) std::abort();
  }
  return 0;
}
