#include "tensor/device.h"

#include <cstring>

#include "base/system_memory.h"
#include "tensor/page_buffer.h"

namespace transept {
namespace {

class HostMemory final : public DeviceMemory {
 public:
  bool is_host() const override { return true; }
  DeviceBuffer allocate(size_t bytes, MemoryUse) override {
    auto pages = std::make_shared<PageBuffer>(PageBuffer::try_allocate(bytes));
    std::byte* const data = pages->data();
    if (data == nullptr) return {};
    return {data, bytes, std::move(pages)};
  }
  void copy_in(void* to, const void* from_host, size_t bytes) override { copy(to, from_host, bytes); }
  void copy_out(void* to_host, const void* from, size_t bytes) override { copy(to_host, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void fill(void* to, uint8_t value, size_t bytes) override {
    if (bytes > 0) std::memset(to, value, bytes);
  }
  uint64_t free_bytes() const override { return available_memory_bytes(); }
};

}  // namespace

DeviceMemory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace transept
