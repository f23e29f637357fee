// Any bytes as a GGUF file: parsing must end, and every value and tensor lie inside the bytes.
#include <cstdint>
#include <span>
#include <vector>

#include "foreign/gguf_file.h"
#include "weights/block_matrix.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  (void)transept::gguf_architecture(bytes);
  const auto file = transept::GgufFile::parse(bytes, "fuzz.gguf");
  if (!file.ok()) return 0;
  volatile unsigned sum = 0;
  for (const auto& tensor : file->tensors()) {
    for (const std::byte b : tensor.data) sum = sum + static_cast<unsigned>(b);
    if (!tensor.blocks.has_value()) continue;
    const int64_t k = tensor.shape.back();
    int64_t n = 1;
    for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) n *= tensor.shape[i];
    const auto matrix = transept::make_block_matrix(*tensor.blocks, tensor.data, n, k, nullptr);
    std::vector<float> row(static_cast<size_t>(k));
    matrix->read_rows(n - 1, 1, {0, k}, row);
  }
  for (const char* key :
       {"tokenizer.ggml.tokens", "tokenizer.ggml.scores", "general.alignment", "general.architecture"}) {
    (void)file->integer(key, 0, 1 << 20);
    const auto texts = file->texts(key);
    if (!texts.ok() || *texts == nullptr) continue;
    for (const std::string_view text : **texts) {
      for (const char c : text) sum = sum + static_cast<unsigned>(c);
    }
  }
  return 0;
}
