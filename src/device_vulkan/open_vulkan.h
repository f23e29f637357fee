// The Vulkan device that a name means, ready for models. Loads libvulkan when it is called first, and not before.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "attention/backend.h"
#include "base/isa.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "tensor/device.h"

namespace transept {

// What a rank needs of an open device, without Vulkan's own types.
class VulkanHandle {
 public:
  virtual ~VulkanHandle() = default;

  virtual DeviceMemory& memory() const = 0;
  // One for each rank; borrows the threads. It keeps the memory.
  virtual std::unique_ptr<Device> make_device(ThreadPool& threads, Isa isa) const = 0;
  virtual std::unique_ptr<AttentionBackend> make_attention() const = 0;
  // "llvmpipe (LLVM 15.0.6, 256 bits)", "llvmpipe, Mesa 22.3.6 (LLVM 15.0.6)".
  virtual DeviceNames names() const = 0;
};

struct VulkanOpening {
  // Khronos' validation layer tells each problem that it sees (VulkanInstance::Options). For tests. Null: not loaded.
  std::function<void(std::string_view message)> on_problem = nullptr;
  bool keeps_recordings = true;  // VulkanTimeline::Options
  // --device-matrices: auto, on, off; --device-arithmetic float16.
  std::string matrices = "auto";
  bool rounds_inputs = false;
};

// name: as pick_vulkan_device() takes it. Errors: those of list_vulkan_devices() and pick_vulkan_device(); the device
// cannot be opened, has not the memory of its own tables, or has no matrices that `matrices` or `rounds_inputs` needs.
StatusOr<std::shared_ptr<const VulkanHandle>> open_vulkan_device(std::string_view name, VulkanOpening opening = {});

}  // namespace transept
