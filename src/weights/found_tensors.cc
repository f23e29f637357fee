#include "weights/found_tensors.h"

#include <utility>

namespace transept {

std::span<std::byte> FoundTensors::make(std::string_view dtype, const std::string& name, std::vector<int64_t> shape) {
  size_t size = dtype == "F32" ? 4 : 2;
  for (const int64_t side : shape) size *= static_cast<size_t>(side);
  auto bytes = std::make_unique<std::vector<std::byte>>(size);
  const std::span<std::byte> room(*bytes);
  tensors.push_back({{name, std::string(dtype), std::move(shape), room}, {}});
  made.push_back(std::move(bytes));
  return room;
}

}  // namespace transept
