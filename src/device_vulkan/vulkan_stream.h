// Recordings as command buffers on the queue of a Vulkan device, which a timeline semaphore counts. A wave begins with
// one barrier over all memory; so does a recording, after what the queue had before. An operand is bound from the
// device's alignment below its first byte on; the kernel touches no byte before that. Used by one thread at a time, as
// its device.
#pragma once

#include <memory>

#include "device_vulkan/vulkan_device.h"
#include "device_vulkan/vulkan_memory.h"
#include "recording/stream.h"

namespace transept {

class VulkanStream final : public Stream {
 public:
  // Borrows the memory, which is the device's. Errors: those of vulkan_status().
  static StatusOr<std::unique_ptr<VulkanStream>> create(std::shared_ptr<VulkanDevice> device, VulkanMemory& memory);
  // REQUIRES: its prepared recordings are gone.
  ~VulkanStream() override;

  StatusOr<std::unique_ptr<PreparedRecording>> prepare(const Recording& recording) override;
  StatusOr<Ticket> submit(PreparedRecording& recording) override;
  Status wait(Ticket ticket, TimePoint deadline) override;

 private:
  class Prepared;

  VulkanStream(std::shared_ptr<VulkanDevice> device, VulkanMemory& memory)
      : device_(std::move(device)), memory_(memory) {}
  Status open();
  Status check(const RecordedOp& op) const;
  Status record(const Recording& recording, Prepared& prepared);
  Status record_kernel(const RecordedOp& op, Prepared& prepared);
  Status record_op(const RecordedOp& op, Prepared& prepared);

  std::shared_ptr<VulkanDevice> device_;
  VulkanMemory& memory_;
  VkCommandPool commands_ = VK_NULL_HANDLE;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  uint64_t last_ticket_ = 0, done_ = 0;
  Status lost_;  // what a lost device said first
};

}  // namespace transept
