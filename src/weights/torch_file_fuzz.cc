// Any bytes as a file of torch.save, in either form: parsing must end, and every tensor lie inside the bytes.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "weights/strides.h"
#include "weights/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto tensors = transept::parse_torch_file(bytes, "fuzz.bin");
  if (!tensors.ok()) return 0;
  volatile unsigned sum = 0;  // touch every byte of every view
  for (const transept::StoredTensor& tensor : *tensors) {
    for (const std::byte b : tensor.view.data) sum = sum + static_cast<unsigned>(b);
    const auto width = static_cast<size_t>(transept::safetensors_dtype_bytes(tensor.view.dtype));
    const auto count = static_cast<size_t>(*transept::num_elements(tensor.view.shape));
    if (count * width > size) std::abort();
    if (tensor.strides.empty()) {
      if (tensor.view.data.size() != count * width) std::abort();
    } else {
      std::vector<std::byte> gathered(count * width);
      transept::gather(tensor.view.data, width, tensor.view.shape, tensor.strides, gathered, nullptr);
      for (const std::byte b : gathered) sum = sum + static_cast<unsigned>(b);
    }
  }
  return 0;
}
