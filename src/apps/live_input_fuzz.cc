// Any bytes as live audio, whole and in pieces: an error in both, or the same samples.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "apps/live_input.h"

namespace {

bool feed(transept::LiveInput input, std::string_view bytes, size_t step, std::vector<int16_t>& samples) {
  for (size_t at = 0; at < bytes.size(); at += step) {
    if (!input.feed(bytes.substr(at, step), samples).ok()) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = 1 + data[0] % 61;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const transept::LiveInput input = *transept::LiveInput::create("auto");
  std::vector<int16_t> whole, pieces;
  const bool whole_ok = feed(input, bytes, std::max<size_t>(bytes.size(), 1), whole);
  const bool pieces_ok = feed(input, bytes, step, pieces);
  if (whole_ok != pieces_ok || (whole_ok && whole != pieces)) std::abort();
  if (whole.size() * 2 > size) std::abort();
  return 0;
}
