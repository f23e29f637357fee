#include "tensor/device_floats.h"

#include <new>

namespace transept {

DeviceFloats::DeviceFloats(std::vector<float> values, DeviceMemory& memory) : size_(values.size()) {
  if (values.empty()) return;
  if (memory.is_host()) {
    auto kept = std::make_shared<const std::vector<float>>(std::move(values));
    data_ = kept->data();
    keeper_ = std::move(kept);
    return;
  }
  const size_t bytes = values.size() * sizeof(float);
  DeviceBuffer buffer = memory.allocate(bytes, MemoryUse::kWeights);
  if (buffer.data() == nullptr) throw std::bad_alloc();
  memory.copy_in(buffer.data(), values.data(), bytes);
  data_ = reinterpret_cast<const float*>(buffer.data());
  keeper_ = buffer.keeper();
}

}  // namespace transept
