// Any bytes as a pickle: parsing must end, and what it returns must be inside the bytes and within its contract.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "weights/torch_pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using transept::PickleKind, transept::PickleValue, transept::TorchPickle;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto pickle = TorchPickle::parse(bytes);
  if (!pickle.ok()) return 0;
  if (pickle->num_bytes() > size) std::abort();
  if (!pickle->root().is(PickleKind::kDict)) return 0;
  volatile unsigned sum = 0;  // touch every byte of every string
  for (const PickleValue& value : pickle->items(pickle->root())) {
    for (const char c : value.text()) sum = sum + static_cast<unsigned>(c);
    if (!value.is(PickleKind::kTensor)) continue;
    const transept::PickledTensor& tensor = pickle->tensor(value);
    if (tensor.shape.size() != tensor.strides.size() || tensor.shape.size() > transept::kMaxPickleRank) std::abort();
    if (tensor.offset < 0 || tensor.storage.begin < 0 || tensor.storage.end > tensor.storage.num_elements) std::abort();
  }
  return 0;
}
