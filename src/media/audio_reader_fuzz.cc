// Any bytes as an audio file: opening answers with a status, reading ends, and what is read is sound.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "media/audio_reader.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const transept::AudioReader::Options options{.max_seconds = 20};
  const auto reader = transept::AudioReader::open({nullptr, {data, size}}, options);
  if (!reader.ok()) return 0;
  std::vector<float> piece(1000);
  for (size_t total = 0;;) {
    const auto count = (*reader)->read(piece);
    if (!count.ok()) break;
    for (size_t i = 0; i < *count; ++i) require(piece[i] >= -1 && piece[i] <= 1);
    total += *count;
    require(total <= 20 * 16000);
    if (*count < piece.size()) break;
  }
  (void)(*reader)->warning();
  return 0;
}
