// Any bytes as a model.bin of CTranslate2: parsing must end, every variable lie inside the bytes, and every alias lead
// to one.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "foreign/ct2_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  transept::ct2_spec(bytes);
  const auto model = transept::Ct2File::parse(bytes, "fuzz.bin");
  if (!model.ok()) return 0;
  volatile unsigned sum = 0;
  for (const auto& [name, variable] : model->variables()) {
    if (model->find(name) != &variable) std::abort();
    for (const std::byte b : variable.data) sum = sum + static_cast<unsigned>(b);
    if (variable.is_scalar() != model->scalar(name).has_value()) std::abort();
  }
  return 0;
}
