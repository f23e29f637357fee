// Any bytes as a file of whisper.cpp: parsing must end, and every token and tensor lie inside the bytes.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "foreign/ggml_file.h"
#include "weights/block_matrix.h"

namespace {

void touch(std::span<const std::byte> bytes) {
  volatile unsigned sum = 0;
  for (const std::byte b : bytes) sum = sum + static_cast<unsigned>(b);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto model = transept::parse_ggml_file(bytes, "fuzz.bin");
  if (!model.ok()) return 0;
  for (const std::string_view token : model->tokens) touch(std::as_bytes(std::span(token)));
  for (const auto& tensor : model->tensors) {
    touch(tensor.data);
    if (!tensor.blocks.has_value()) continue;
    const int64_t k = tensor.shape.back();
    int64_t n = 1;
    for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) n *= tensor.shape[i];
    const auto matrix = transept::make_block_matrix(*tensor.blocks, tensor.data, n, k, nullptr);
    std::vector<float> row(static_cast<size_t>(k));
    matrix->read_rows(n - 1, 1, {0, k}, row);
  }
  return 0;
}
