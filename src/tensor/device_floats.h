// A list of floats in a device's memory: biases, weights of norms. Owns it. Immutable, so thread-safe; copies share the
// memory.
#pragma once

#include <memory>
#include <vector>

#include "tensor/device.h"

namespace transept {

class DeviceFloats final {
 public:
  DeviceFloats() = default;
  // Throws std::bad_alloc if the device refuses.
  DeviceFloats(std::vector<float> values, DeviceMemory& memory);

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  const float* data() const { return data_; }  // an address of the device; null: empty

 private:
  const float* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const void> keeper_;
};

}  // namespace transept
