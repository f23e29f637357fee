// What a driver says of a device, as values that are checked. Functions without state: thread-safe.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "device_vulkan/device_info.h"
#include "device_vulkan/vulkan_functions.h"

namespace transept {

// Returns what the device is, and in `refusal` why it cannot be used: Vulkan below 1.2, no queue that computes, no
// timeline semaphores, limits below those that kernels need or that Vulkan promises, numbers that cannot be.
VulkanDeviceInfo query_device(const VulkanFunctions& functions, VkPhysicalDevice device);

// The device's heaps and types of memory, or kInternal where their counts or indices cannot be.
StatusOr<VkPhysicalDeviceMemoryProperties> query_memory(const VulkanFunctions& functions, VkPhysicalDevice device);

// Errors: those of vulkan_status().
StatusOr<std::vector<VkExtensionProperties>> query_extensions(const VulkanFunctions& functions,
                                                              VkPhysicalDevice device);

}  // namespace transept
