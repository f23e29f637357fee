#include "speech/compression_ratio.h"

#include <zlib.h>

#include <vector>

#include "base/check.h"

namespace transept {

double compression_ratio(std::string_view text) {
  constexpr int kLevel = 6;
  const auto size = static_cast<uLong>(text.size());
  std::vector<Bytef> compressed(compressBound(size));
  uLongf compressed_size = compressed.size();
  const int result =
      compress2(compressed.data(), &compressed_size, reinterpret_cast<const Bytef*>(text.data()), size, kLevel);
  CHECK(result == Z_OK, "zlib: ", result);  // the bound is enough room; other failures are no memory
  return static_cast<double>(size) / static_cast<double>(compressed_size);
}

}  // namespace transept
