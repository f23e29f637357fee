// Loads libvulkan.so.1 when a Vulkan device is asked for, not at program start: no other process needs it, and a driver
// starts threads. It stays loaded until the process ends. Thread-safe.
#pragma once

#include "base/status.h"
#include "device_vulkan/vulkan_functions.h"

namespace transept {

// Returns the loader's entry; loads it once. Errors: kNotFound, with what to install.
StatusOr<PFN_vkGetInstanceProcAddr> load_vulkan();

}  // namespace transept
