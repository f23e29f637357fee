#include "device_vulkan/vulkan_space.h"

#include "base/log.h"

namespace transept {

DeviceBuffer VulkanSpace::allocate(size_t bytes) {
  if (bytes == 0) return {};
  std::byte* first = nullptr;
  {
    const MutexLock lock(mutex_);
    const StatusOr<std::byte*> memory = timeline_->allocate(bytes);
    if (!memory.ok()) {
      log_error(info_.name, ": ", error_message(memory.status()));
      return {};
    }
    first = *memory;
  }
  const auto free = [space = shared_from_this(), first](const void*) {
    const MutexLock lock(space->mutex_);
    space->timeline_->free(first);
  };
  return {first, bytes, std::shared_ptr<const void>(first, free)};
}

void VulkanSpace::copy_in(void* to, const void* from_host, size_t bytes) {
  const MutexLock lock(mutex_);
  timeline_->copy_in(to, from_host, bytes);
}

void VulkanSpace::copy_out(void* to_host, const void* from, size_t bytes) {
  const MutexLock lock(mutex_);
  timeline_->copy_out(to_host, from, bytes);
}

void VulkanSpace::copy(void* to, const void* from, size_t bytes) {
  const MutexLock lock(mutex_);
  timeline_->copy(to, from, bytes);
}

void VulkanSpace::fill(void* to, uint8_t value, size_t bytes) {
  const MutexLock lock(mutex_);
  timeline_->fill(to, value, bytes);
}

uint64_t VulkanSpace::free_bytes() const {
  const MutexLock lock(mutex_);
  return timeline_->free_bytes();
}

void VulkanSpace::with_timeline(FunctionRef<void(VulkanTimeline&)> record) {
  const MutexLock lock(mutex_);
  record(*timeline_);
}

Status VulkanSpace::status() const {
  const MutexLock lock(mutex_);
  return timeline_->status();
}

}  // namespace transept
