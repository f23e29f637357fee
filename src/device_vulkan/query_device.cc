#include "device_vulkan/query_device.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/ascii.h"
#include "base/quoted.h"
#include "device_vulkan/kernels.h"
#include "device_vulkan/query_matrices.h"

namespace transept {
namespace {

constexpr uint32_t kMostListed = 4096;

// What kernels need, and what Vulkan promises (Required Limits): a driver that says less is not believed.
constexpr uint64_t kLeastRange = uint64_t{1} << 27, kLeastAllocation = uint64_t{1} << 30;
constexpr uint32_t kLeastGroups = 65535, kMostAlignment = 256;

// A text of a driver: ended or cut, without what terminals obey.
template <size_t kSize>
std::string text_of(const char (&text)[kSize]) {
  return printable(std::string_view(text, ::strnlen(text, kSize)));
}

VulkanDeviceType type_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return VulkanDeviceType::kIntegrated;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return VulkanDeviceType::kDiscrete;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return VulkanDeviceType::kVirtual;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return VulkanDeviceType::kCpu;
    default: return VulkanDeviceType::kOther;
  }
}

std::string version_text(uint32_t version) {
  return str_cat(VK_API_VERSION_MAJOR(version), ".", VK_API_VERSION_MINOR(version), ".", VK_API_VERSION_PATCH(version));
}

std::string alias_of(const VkPhysicalDeviceDriverProperties& driver) {
  if (driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE) return "lavapipe";
  return driver.driverID == VK_DRIVER_ID_GOOGLE_SWIFTSHADER ? "swiftshader" : "";
}

// Copies the limits. Returns what is wrong with them, or "".
std::string take_limits(const VkPhysicalDeviceLimits& limits, uint64_t max_allocation, VulkanDeviceInfo& info) {
  info.max_range = limits.maxStorageBufferRange;
  info.max_allocation = max_allocation;
  info.range_alignment = static_cast<uint32_t>(
      std::min<VkDeviceSize>(limits.minStorageBufferOffsetAlignment, VkDeviceSize{kMostAlignment} + 1));
  info.max_operands = limits.maxPerStageDescriptorStorageBuffers;
  std::copy_n(limits.maxComputeWorkGroupCount, 3, info.max_groups.begin());
  const auto too_little = [](std::string_view what, uint64_t is, uint64_t needed) {
    return is >= needed ? "" : str_cat("its driver says ", what, " ", is, ", and ", needed, " are needed");
  };
  const std::string problems[] = {
      too_little("maxStorageBufferRange", limits.maxStorageBufferRange, kLeastRange),
      too_little("maxMemoryAllocationSize", max_allocation, kLeastAllocation),
      too_little("maxComputeWorkGroupInvocations", limits.maxComputeWorkGroupInvocations, kMostLanes),
      too_little("maxComputeWorkGroupSize", limits.maxComputeWorkGroupSize[0], kMostLanes),
      too_little("maxComputeSharedMemorySize", limits.maxComputeSharedMemorySize, kSharedBytes),
      too_little("maxPushConstantsSize", limits.maxPushConstantsSize, kPushBytes),
      too_little("maxPerStageDescriptorStorageBuffers", limits.maxPerStageDescriptorStorageBuffers, kLeastOperands),
      too_little("maxComputeWorkGroupCount", *std::min_element(info.max_groups.begin(), info.max_groups.end()),
                 kLeastGroups)};
  for (const std::string& problem : problems) {
    if (!problem.empty()) return problem;
  }
  if (info.range_alignment > kMostAlignment || !std::has_single_bit(info.range_alignment)) {
    return str_cat("its driver says minStorageBufferOffsetAlignment ", limits.minStorageBufferOffsetAlignment);
  }
  return "";
}

std::string take_queue(const VulkanFunctions& functions, VkPhysicalDevice device, VulkanDeviceInfo& info) {
  uint32_t count = 0;
  functions.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(std::min(count, kMostListed));
  count = static_cast<uint32_t>(families.size());
  functions.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  families.resize(std::min<size_t>(count, families.size()));
  for (size_t i = 0; i < families.size(); ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0 || families[i].queueCount == 0) continue;
    info.queue_family = static_cast<uint32_t>(i);
    return "";
  }
  return "it has no queue that computes";
}

void take_features(const VulkanFunctions& functions, VkPhysicalDevice device, VulkanDeviceInfo& info,
                   bool* has_timeline) {
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{};
  dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.pNext = &dot;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features12;
  functions.vkGetPhysicalDeviceFeatures2(device, &features);
  info.has_float16 = features12.shaderFloat16 != VK_FALSE;
  info.has_int8 = features12.shaderInt8 != VK_FALSE;
  info.has_dot = dot.shaderIntegerDotProduct != VK_FALSE;
  *has_timeline = features12.timelineSemaphore != VK_FALSE;
}

// The largest heap of the device's own; on the processor its memory is all that there is.
std::string take_memory(const VulkanFunctions& functions, VkPhysicalDevice device, VulkanDeviceInfo& info) {
  const StatusOr<VkPhysicalDeviceMemoryProperties> memory = query_memory(functions, device);
  if (!memory.ok()) return error_message(memory.status());
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 again{};
  again.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  again.pNext = &budget;
  if (info.has_budget) functions.vkGetPhysicalDeviceMemoryProperties2(device, &again);
  for (uint32_t i = 0; i < memory->memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory->memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0 || heap.size < info.memory_bytes) continue;
    info.memory_bytes = heap.size;
    // The budget counts what this process already has.
    const uint64_t used = budget.heapUsage[i], allowed = std::min<uint64_t>(budget.heapBudget[i], heap.size);
    info.free_bytes = !info.has_budget ? heap.size : allowed > used ? allowed - used : 0;
  }
  return info.memory_bytes == 0 ? "it has no memory of its own" : "";
}

}  // namespace

StatusOr<std::vector<VkExtensionProperties>> query_extensions(const VulkanFunctions& functions,
                                                              VkPhysicalDevice device) {
  uint32_t count = 0;
  TRANSEPT_VULKAN_CALL(functions, vkEnumerateDeviceExtensionProperties, device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(std::min(count, kMostListed));
  count = static_cast<uint32_t>(extensions.size());
  TRANSEPT_VULKAN_CALL(functions, vkEnumerateDeviceExtensionProperties, device, nullptr, &count, extensions.data());
  extensions.resize(std::min<size_t>(count, extensions.size()));
  return extensions;
}

StatusOr<VkPhysicalDeviceMemoryProperties> query_memory(const VulkanFunctions& functions, VkPhysicalDevice device) {
  VkPhysicalDeviceMemoryProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  functions.vkGetPhysicalDeviceMemoryProperties2(device, &properties);
  const VkPhysicalDeviceMemoryProperties& memory = properties.memoryProperties;
  const bool is_possible =
      memory.memoryTypeCount <= VK_MAX_MEMORY_TYPES && memory.memoryHeapCount <= VK_MAX_MEMORY_HEAPS;
  for (uint32_t i = 0; is_possible && i < memory.memoryTypeCount; ++i) {
    if (memory.memoryTypes[i].heapIndex >= memory.memoryHeapCount) {
      return absl::InternalError("its driver names a heap of memory that is not there");
    }
  }
  if (!is_possible) return absl::InternalError("its driver lists more memory than Vulkan has room for");
  return memory;
}

VulkanDeviceInfo query_device(const VulkanFunctions& functions, VkPhysicalDevice device) {
  VulkanDeviceInfo info;
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  VkPhysicalDeviceMaintenance3Properties maintenance{};
  maintenance.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  maintenance.pNext = &driver;
  VkPhysicalDeviceSubgroupProperties subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  subgroup.pNext = &maintenance;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &subgroup;
  functions.vkGetPhysicalDeviceProperties2(device, &properties);
  const VkPhysicalDeviceProperties& of = properties.properties;
  info.name = text_of(of.deviceName);
  info.driver = text_of(driver.driverName);
  info.driver_version = text_of(driver.driverInfo);
  info.alias = alias_of(driver);
  info.vulkan_version = version_text(of.apiVersion);
  info.type = type_of(of.deviceType);
  info.subgroup_size = subgroup.subgroupSize;
  if (of.apiVersion < VK_API_VERSION_1_2) {
    info.refusal = str_cat("its driver has Vulkan ", info.vulkan_version, ", and 1.2 is needed");
    return info;
  }
  const StatusOr<std::vector<VkExtensionProperties>> extensions = query_extensions(functions, device);
  if (!extensions.ok()) {
    info.refusal = error_message(extensions.status());
    return info;
  }
  info.has_budget = has_extension(*extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  bool has_timeline = false;
  take_features(functions, device, info, &has_timeline);
  take_matrices(functions, device, *extensions, of.limits.maxComputeSharedMemorySize, info);
  const std::string problems[] = {has_timeline ? "" : "its driver has no timeline semaphores",
                                  take_limits(of.limits, maintenance.maxMemoryAllocationSize, info),
                                  take_queue(functions, device, info), take_memory(functions, device, info)};
  for (const std::string& problem : problems) {
    if (info.refusal.empty()) info.refusal = problem;
  }
  return info;
}

}  // namespace transept
