// The Vulkan devices of this machine. Loads libvulkan when it is called first, and not before. Thread-safe.
#pragma once

#include <vector>

#include "base/status.h"
#include "device_vulkan/device_info.h"

namespace transept {

// Whether the build has the device: it had Vulkan's headers and a compiler of its kernels.
bool has_vulkan();

// Returns all, those too that cannot be used. Errors: kUnimplemented, the build has none; kNotFound, libvulkan is not
// installed; others: its first calls failed.
StatusOr<std::vector<VulkanDeviceInfo>> list_vulkan_devices();

}  // namespace transept
