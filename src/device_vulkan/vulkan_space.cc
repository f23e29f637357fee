#include "device_vulkan/vulkan_space.h"

#include <algorithm>

#include "base/log.h"

namespace transept {

void VulkanSpace::wait_for_turn() {
  while (in_step_ != std::thread::id() && in_step_ != std::this_thread::get_id()) step_ended_.wait(mutex_);
}

void VulkanSpace::begin_step() {
  const MutexLock lock(mutex_);
  wait_for_turn();
  timeline_->begin_step();
  if (keeps_recordings_) in_step_ = std::this_thread::get_id();
}

StepCounts VulkanSpace::end_step() {
  const MutexLock lock(mutex_);
  const StepCounts counts = timeline_->end_step();
  in_step_ = {};
  step_ended_.notify_all();
  return counts;
}

DeviceBuffer VulkanSpace::allocate(size_t bytes, MemoryUse use) {
  const auto index = static_cast<size_t>(use);
  if (bytes == 0) return {};
  std::byte* first = nullptr;
  {
    const MutexLock lock(mutex_);
    wait_for_turn();
    const StatusOr<std::byte*> memory = timeline_->allocate(bytes);
    if (!memory.ok()) {
      log_error(info_.name, ": ", error_message(memory.status()));
      return {};
    }
    first = *memory;
    bytes_.at(index) += bytes;
  }
  const auto free = [space = shared_from_this(), first, bytes, index](const void*) {
    const MutexLock lock(space->mutex_);
    space->wait_for_turn();
    space->timeline_->free(first);
    space->bytes_.at(index) -= bytes;
  };
  return {first, bytes, std::shared_ptr<const void>(first, free)};
}

void VulkanSpace::copy_in(void* to, const void* from_host, size_t bytes) {
  const MutexLock lock(mutex_);
  wait_for_turn();
  timeline_->copy_in(to, from_host, bytes);
}

void VulkanSpace::copy_out_some(void* to_host, const void* from, size_t bytes, size_t most) {
  const MutexLock lock(mutex_);
  wait_for_turn();
  timeline_->copy_out(to_host, from, bytes, most);
}

void VulkanSpace::copy(void* to, const void* from, size_t bytes) {
  const MutexLock lock(mutex_);
  wait_for_turn();
  timeline_->copy(to, from, bytes);
}

void VulkanSpace::fill(void* to, uint8_t value, size_t bytes) {
  const MutexLock lock(mutex_);
  wait_for_turn();
  timeline_->fill(to, value, bytes);
}

uint64_t VulkanSpace::free_bytes() const {
  const MutexLock lock(mutex_);
  return timeline_->free_bytes();
}

void VulkanSpace::with_timeline(FunctionRef<void(VulkanTimeline&)> record) {
  const MutexLock lock(mutex_);
  wait_for_turn();
  record(*timeline_);
}

DeviceUsage VulkanSpace::usage() const {
  const MutexLock lock(mutex_);
  DeviceUsage usage = timeline_->usage();
  usage.memory_bytes = bytes_;
  for (const uint64_t bytes : bytes_) usage.own_bytes -= std::min(usage.own_bytes, bytes);
  return usage;
}

StatusOr<VulkanSpace::TriedMatrices> VulkanSpace::tried_matrices(const ModelProducts& products) {
  const MutexLock lock(mutex_);
  wait_for_turn();
  if (const auto found = tried_.find(products); found != tried_.end()) return found->second;
  TriedMatrices tried;
  ASSIGN_OR_RETURN(tried.forms, try_matrices(*timeline_, products, matrices_, tried.report));
  tried_.emplace(products, tried);
  return tried;
}

Status VulkanSpace::status() const {
  const MutexLock lock(mutex_);
  return timeline_->status();
}

}  // namespace transept
