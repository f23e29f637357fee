// Any bytes as an archive of numpy's arrays: parsing must end, every array lies inside the bytes and has those of its
// shape. If it is a model of Marian, its options are read, too.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "foreign/marian_options.h"
#include "foreign/npz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto npz = transept::NpzFile::parse(bytes, "fuzz.npz");
  if (!npz.ok()) return 0;
  volatile unsigned sum = 0;
  for (const auto& [name, array] : npz->arrays()) {
    for (const std::byte b : array.data) sum = sum + static_cast<unsigned>(b);
    uint64_t elements = 1;
    for (const int64_t side : array.shape) elements *= static_cast<uint64_t>(side);
    if (elements == 0 || array.data.size() % elements != 0) std::abort();
  }
  const auto options = transept::read_marian_options(*npz);
  if (options.ok() && std::ssize(options->decoder_parameters) != options->decoder_layers) std::abort();
  return 0;
}
