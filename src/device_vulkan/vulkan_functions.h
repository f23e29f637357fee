// The functions of Vulkan that are in use, as a table that is filled at run time: by the system's loader
// (vulkan_library.h) or by a test. Of this folder alone. A value.
#pragma once

#define VK_NO_PROTOTYPES 1
#include <vulkan/vulkan_core.h>

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

// Every function in use. clang-format finds another form of the list each time.
// clang-format off
#define TRANSEPT_VULKAN_GLOBAL_FUNCTIONS(X) \
  X(vkCreateInstance) \
  X(vkEnumerateInstanceExtensionProperties) \
  X(vkEnumerateInstanceVersion)
#define TRANSEPT_VULKAN_FUNCTIONS(X) \
  X(vkAllocateCommandBuffers) \
  X(vkAllocateDescriptorSets) \
  X(vkAllocateMemory) \
  X(vkBeginCommandBuffer) \
  X(vkBindBufferMemory) \
  X(vkCmdBindDescriptorSets) \
  X(vkCmdBindPipeline) \
  X(vkCmdCopyBuffer) \
  X(vkCmdDispatch) \
  X(vkCmdDispatchIndirect) \
  X(vkCmdFillBuffer) \
  X(vkCmdPipelineBarrier) \
  X(vkCmdPushConstants) \
  X(vkCreateBuffer) \
  X(vkCreateCommandPool) \
  X(vkCreateComputePipelines) \
  X(vkCreateDescriptorPool) \
  X(vkCreateDescriptorSetLayout) \
  X(vkCreateDevice) \
  X(vkCreatePipelineLayout) \
  X(vkCreateSemaphore) \
  X(vkCreateShaderModule) \
  X(vkDestroyBuffer) \
  X(vkDestroyCommandPool) \
  X(vkDestroyDescriptorPool) \
  X(vkDestroyDescriptorSetLayout) \
  X(vkDestroyDevice) \
  X(vkDestroyInstance) \
  X(vkDestroyPipeline) \
  X(vkDestroyPipelineLayout) \
  X(vkDestroySemaphore) \
  X(vkDestroyShaderModule) \
  X(vkEndCommandBuffer) \
  X(vkEnumerateDeviceExtensionProperties) \
  X(vkEnumeratePhysicalDevices) \
  X(vkFreeCommandBuffers) \
  X(vkFreeMemory) \
  X(vkGetBufferMemoryRequirements) \
  X(vkGetDeviceQueue) \
  X(vkGetPhysicalDeviceFeatures2) \
  X(vkGetPhysicalDeviceMemoryProperties2) \
  X(vkGetPhysicalDeviceProperties2) \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkMapMemory) \
  X(vkQueueSubmit) \
  X(vkUpdateDescriptorSets) \
  X(vkWaitSemaphores)
// clang-format on

namespace transept {

#define TRANSEPT_VULKAN_MEMBER(name) PFN_##name name = nullptr;
struct VulkanFunctions {
  PFN_vkGetInstanceProcAddr get = nullptr;
  TRANSEPT_VULKAN_GLOBAL_FUNCTIONS(TRANSEPT_VULKAN_MEMBER)
  TRANSEPT_VULKAN_FUNCTIONS(TRANSEPT_VULKAN_MEMBER)
  PFN_vkVoidFunction query_matrices = nullptr;  // cooperative_matrix.h; null: this Vulkan has none

  // Errors: kNotFound, `get` lacks one. The others are found once there is an instance.
  Status find_global();
  Status find_others(VkInstance instance);
};
#undef TRANSEPT_VULKAN_MEMBER

// Whether one of these has the name.
bool has_extension(std::span<const VkExtensionProperties> extensions, std::string_view name);

// "VK_ERROR_DEVICE_LOST"; "VkResult -999" for what is unknown.
std::string vulkan_result_name(VkResult result);

// What a call gave: "vkCreateBuffer: VK_ERROR_OUT_OF_DEVICE_MEMORY". kResourceExhausted: memory of the device or the
// host; kUnavailable: the device is lost; kDeadlineExceeded: VK_TIMEOUT; kInternal: any other that is no success.
// VK_INCOMPLETE is a success.
Status vulkan_status(std::string_view call, VkResult result);

}  // namespace transept

// In a function that returns a Status. `functions`: a VulkanFunctions.
#define TRANSEPT_VULKAN_CALL(functions, name, ...) \
  RETURN_IF_ERROR(::transept::vulkan_status(#name, (functions).name(__VA_ARGS__)))
