// What a driver says of a device's matrix units, and which of them products are made of. Functions without state:
// thread-safe.
#pragma once

#include <span>

#include "device_vulkan/device_info.h"
#include "device_vulkan/vulkan_functions.h"

namespace transept {

// Sets the info's kinds of matrices and tiles, or why there are none: a device without them is as good a device.
// max_shared: bytes of a group. REQUIRES: the info has the driver's alias and the subgroup's size.
void take_matrices(const VulkanFunctions& functions, VkPhysicalDevice device,
                   std::span<const VkExtensionProperties> extensions, uint32_t max_shared, VulkanDeviceInfo& info);

}  // namespace transept
