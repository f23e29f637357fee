#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device_vulkan/fake_vulkan_testing.h"

namespace transept::testing {
namespace {

FakeVulkan* g_fake = nullptr;
uint64_t g_last = 0, g_signalled = 0;
std::map<uint64_t, std::vector<std::byte>> g_memory;

bool fails(const char* name) {
  if (g_fake->num_calls++ != g_fake->fail_at) return false;
  g_fake->failed = name;
  return true;
}

template <typename Handle>
uint64_t number(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

template <typename Handle>
VkResult make(const char* call, const char* kind, Handle* handle) {
  if (fails(call)) return g_fake->result;
  *handle = reinterpret_cast<Handle>(++g_last);
  g_fake->live[kind].insert(g_last);
  return VK_SUCCESS;
}

template <typename Handle>
void destroy(const char* kind, Handle handle) {
  if (handle == VK_NULL_HANDLE) return;
  if (g_fake->live[kind].erase(number(handle)) == 0) g_fake->misuse.push_back(str_cat(kind, " is not there"));
}

template <typename Item, typename Copy>
VkResult list(const char* call, uint32_t* count, Item* items, uint32_t there, const Copy& copy) {
  if (call != nullptr && fails(call)) return g_fake->result;
  const uint32_t room = *count;
  *count = there + g_fake->claimed;
  if (items == nullptr) return VK_SUCCESS;
  for (uint32_t i = 0; i < std::min(room, there); ++i) copy(items[i], i);
  return room < *count ? VK_INCOMPLETE : VK_SUCCESS;
}

// The structure of this type in a chain; null: it is not asked for.
template <typename Structure>
Structure* find(void* chain, VkStructureType type) {
  for (auto* at = static_cast<VkBaseOutStructure*>(chain); at != nullptr; at = at->pNext) {
    if (at->sType == type) return reinterpret_cast<Structure*>(at);
  }
  return nullptr;
}

template <typename Structure>
void assign(Structure& to, const Structure& from) {
  void* const next = to.pNext;
  to = from;
  to.pNext = next;
}

// Vulkan's functions by their names.
struct Calls {
  static VkResult vkEnumerateInstanceVersion(uint32_t* version) {
    if (fails("vkEnumerateInstanceVersion")) return g_fake->result;
    *version = VK_API_VERSION_1_3;
    return VK_SUCCESS;
  }
  static VkResult vkEnumerateInstanceExtensionProperties(const char*, uint32_t* count, VkExtensionProperties* items) {
    return list("vkEnumerateInstanceExtensionProperties", count, items, 0, [](VkExtensionProperties&, uint32_t) {});
  }
  static VkResult vkCreateInstance(const VkInstanceCreateInfo*, const VkAllocationCallbacks*, VkInstance* out) {
    return make("vkCreateInstance", "instance", out);
  }
  static void vkDestroyInstance(VkInstance instance, const VkAllocationCallbacks*) {
    destroy("instance", instance);
    if (g_fake->num_live() > 0) g_fake->misuse.emplace_back("the instance goes before what is of it");
  }
  static VkResult vkEnumeratePhysicalDevices(VkInstance, uint32_t* count, VkPhysicalDevice* items) {
    return list("vkEnumeratePhysicalDevices", count, items, g_fake->num_devices,
                [](VkPhysicalDevice& item, uint32_t i) { item = reinterpret_cast<VkPhysicalDevice>(uint64_t{i} + 1); });
  }
  static void vkGetPhysicalDeviceProperties2(VkPhysicalDevice, VkPhysicalDeviceProperties2* out) {
    out->properties = g_fake->device.properties;
    if (auto* maintenance = find<VkPhysicalDeviceMaintenance3Properties>(
            out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES)) {
      maintenance->maxMemoryAllocationSize = g_fake->device.max_allocation;
    }
    if (auto* driver =
            find<VkPhysicalDeviceDriverProperties>(out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES)) {
      assign(*driver, g_fake->device.driver);
    }
    if (auto* subgroup = find<VkPhysicalDeviceSubgroupProperties>(
            out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES)) {
      subgroup->subgroupSize = g_fake->device.subgroup_size;
    }
    if (auto* sizes = find<VkPhysicalDeviceSubgroupSizeControlProperties>(
            out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES)) {
      sizes->minSubgroupSize = 8;
      sizes->maxSubgroupSize = 64;
      sizes->requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
    }
  }
  static void vkGetPhysicalDeviceFeatures2(VkPhysicalDevice, VkPhysicalDeviceFeatures2* out) {
    if (auto* features =
            find<VkPhysicalDeviceVulkan12Features>(out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)) {
      features->timelineSemaphore = g_fake->device.has_timeline ? VK_TRUE : VK_FALSE;
      features->shaderFloat16 = features->shaderInt8 = VK_TRUE;
    }
    if (auto* matrices = find<MatrixFeatures>(out->pNext, kMatrixFeaturesType)) {
      matrices->cooperativeMatrix = g_fake->device.has_matrices ? VK_TRUE : VK_FALSE;
    }
    if (auto* model = find<VkPhysicalDeviceVulkanMemoryModelFeatures>(
            out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES)) {
      model->vulkanMemoryModelDeviceScope = VK_TRUE;
      model->vulkanMemoryModel = g_fake->device.has_memory_model ? VK_TRUE : VK_FALSE;
    }
    if (auto* control = find<VkPhysicalDeviceSubgroupSizeControlFeatures>(
            out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES)) {
      control->subgroupSizeControl = VK_TRUE;
      control->computeFullSubgroups = g_fake->device.has_full_subgroups ? VK_TRUE : VK_FALSE;
    }
  }
  static void vkGetPhysicalDeviceMemoryProperties2(VkPhysicalDevice, VkPhysicalDeviceMemoryProperties2* out) {
    out->memoryProperties = g_fake->device.memory;
    if (auto* budget = find<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
            out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT)) {
      budget->heapBudget[0] = g_fake->device.budget;
      budget->heapUsage[0] = g_fake->device.used;
    }
  }
  static void vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice, uint32_t* count,
                                                       VkQueueFamilyProperties* items) {
    list(nullptr, count, items, 1, [](VkQueueFamilyProperties& item, uint32_t) {
      item = {};
      item.queueFlags = g_fake->device.queue_flags;
      item.queueCount = 1;
    });
  }
  static VkResult vkEnumerateDeviceExtensionProperties(VkPhysicalDevice, const char*, uint32_t* count,
                                                       VkExtensionProperties* items) {
    const std::vector<std::string>& names = g_fake->device.extensions;
    return list("vkEnumerateDeviceExtensionProperties", count, items, static_cast<uint32_t>(names.size()),
                [&](VkExtensionProperties& item, uint32_t i) {
                  item = {};
                  std::copy_n(names[i].begin(), std::min<size_t>(names[i].size(), VK_MAX_EXTENSION_NAME_SIZE),
                              item.extensionName);
                });
  }
  static VkResult matrix_properties(VkPhysicalDevice, uint32_t* count, MatrixProperties* items) {
    const std::vector<MatrixProperties>& matrices = g_fake->device.matrices;
    return list(kMatrixQuery, count, items, static_cast<uint32_t>(matrices.size()),
                [&](MatrixProperties& item, uint32_t i) { assign(item, matrices[i]); });
  }
  static VkResult vkCreateDevice(VkPhysicalDevice, const VkDeviceCreateInfo* info, const VkAllocationCallbacks*,
                                 VkDevice* out) {
    g_fake->enabled.assign(info->ppEnabledExtensionNames, info->ppEnabledExtensionNames + info->enabledExtensionCount);
    return make("vkCreateDevice", "device", out);
  }
  static void vkDestroyDevice(VkDevice device, const VkAllocationCallbacks*) {
    destroy("device", device);
    if (g_fake->num_live() > 1) g_fake->misuse.emplace_back("the device goes before what is of it");
  }
  static void vkGetDeviceQueue(VkDevice, uint32_t, uint32_t, VkQueue* out) { *out = reinterpret_cast<VkQueue>(1); }

  static VkResult vkCreateBuffer(VkDevice, const VkBufferCreateInfo* info, const VkAllocationCallbacks*,
                                 VkBuffer* out) {
    const VkResult result = make("vkCreateBuffer", "buffer", out);
    if (result == VK_SUCCESS) g_memory[number(*out)].resize(info->size);
    return result;
  }
  static void vkDestroyBuffer(VkDevice, VkBuffer buffer, const VkAllocationCallbacks*) {
    destroy("buffer", buffer);
    g_memory.erase(number(buffer));
  }
  static void vkGetBufferMemoryRequirements(VkDevice, VkBuffer buffer, VkMemoryRequirements* out) {
    *out = {g_memory[number(buffer)].size() + g_fake->more_memory, 256, ~uint32_t{0}};
  }
  static VkResult vkAllocateMemory(VkDevice, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*,
                                   VkDeviceMemory* out) {
    const VkResult result = make("vkAllocateMemory", "memory", out);
    if (result == VK_SUCCESS) g_memory[number(*out)].resize(info->allocationSize);
    return result;
  }
  static void vkFreeMemory(VkDevice, VkDeviceMemory memory, const VkAllocationCallbacks*) {
    destroy("memory", memory);
    g_memory.erase(number(memory));
  }
  static VkResult vkBindBufferMemory(VkDevice, VkBuffer, VkDeviceMemory, VkDeviceSize) {
    return fails("vkBindBufferMemory") ? g_fake->result : VK_SUCCESS;
  }
  static VkResult vkMapMemory(VkDevice, VkDeviceMemory memory, VkDeviceSize, VkDeviceSize, VkMemoryMapFlags,
                              void** out) {
    if (fails("vkMapMemory")) return g_fake->result;
    *out = g_memory[number(memory)].data();
    return VK_SUCCESS;
  }

  static VkResult vkCreateDescriptorSetLayout(VkDevice, const VkDescriptorSetLayoutCreateInfo*,
                                              const VkAllocationCallbacks*, VkDescriptorSetLayout* out) {
    return make("vkCreateDescriptorSetLayout", "set layout", out);
  }
  static void vkDestroyDescriptorSetLayout(VkDevice, VkDescriptorSetLayout layout, const VkAllocationCallbacks*) {
    destroy("set layout", layout);
  }
  static VkResult vkCreatePipelineLayout(VkDevice, const VkPipelineLayoutCreateInfo*, const VkAllocationCallbacks*,
                                         VkPipelineLayout* out) {
    return make("vkCreatePipelineLayout", "pipeline layout", out);
  }
  static void vkDestroyPipelineLayout(VkDevice, VkPipelineLayout layout, const VkAllocationCallbacks*) {
    destroy("pipeline layout", layout);
  }
  static VkResult vkCreateShaderModule(VkDevice, const VkShaderModuleCreateInfo*, const VkAllocationCallbacks*,
                                       VkShaderModule* out) {
    return make("vkCreateShaderModule", "module", out);
  }
  static void vkDestroyShaderModule(VkDevice, VkShaderModule module, const VkAllocationCallbacks*) {
    destroy("module", module);
  }
  static VkResult vkCreateComputePipelines(VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo* info,
                                           const VkAllocationCallbacks*, VkPipeline* out) {
    const VkPipelineShaderStageCreateInfo& stage = info->stage;
    g_fake->constants.clear();
    for (uint32_t i = 0; stage.pSpecializationInfo != nullptr && i < stage.pSpecializationInfo->mapEntryCount; ++i) {
      const auto* const data = static_cast<const std::byte*>(stage.pSpecializationInfo->pData);
      uint32_t value = 0;
      std::memcpy(&value, data + stage.pSpecializationInfo->pMapEntries[i].offset, sizeof value);
      g_fake->constants.push_back(value);
    }
    const auto* const required = static_cast<const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo*>(stage.pNext);
    g_fake->required_subgroup = required == nullptr ? 0 : required->requiredSubgroupSize;
    return make("vkCreateComputePipelines", "pipeline", out);
  }
  static void vkDestroyPipeline(VkDevice, VkPipeline pipeline, const VkAllocationCallbacks*) {
    destroy("pipeline", pipeline);
  }
  static VkResult vkCreateDescriptorPool(VkDevice, const VkDescriptorPoolCreateInfo*, const VkAllocationCallbacks*,
                                         VkDescriptorPool* out) {
    return make("vkCreateDescriptorPool", "set pool", out);
  }
  static void vkDestroyDescriptorPool(VkDevice, VkDescriptorPool pool, const VkAllocationCallbacks*) {
    destroy("set pool", pool);
  }
  static VkResult vkAllocateDescriptorSets(VkDevice, const VkDescriptorSetAllocateInfo*, VkDescriptorSet* out) {
    if (fails("vkAllocateDescriptorSets")) return g_fake->result;
    *out = reinterpret_cast<VkDescriptorSet>(++g_last);  // goes with its pool
    return VK_SUCCESS;
  }
  static void vkUpdateDescriptorSets(VkDevice, uint32_t, const VkWriteDescriptorSet*, uint32_t,
                                     const VkCopyDescriptorSet*) {}

  static VkResult vkCreateCommandPool(VkDevice, const VkCommandPoolCreateInfo*, const VkAllocationCallbacks*,
                                      VkCommandPool* out) {
    return make("vkCreateCommandPool", "command pool", out);
  }
  static void vkDestroyCommandPool(VkDevice, VkCommandPool pool, const VkAllocationCallbacks*) {
    destroy("command pool", pool);
  }
  static VkResult vkAllocateCommandBuffers(VkDevice, const VkCommandBufferAllocateInfo*, VkCommandBuffer* out) {
    return make("vkAllocateCommandBuffers", "command buffer", out);
  }
  static void vkFreeCommandBuffers(VkDevice, VkCommandPool, uint32_t, const VkCommandBuffer* buffers) {
    destroy("command buffer", *buffers);
  }
  static VkResult vkBeginCommandBuffer(VkCommandBuffer, const VkCommandBufferBeginInfo*) {
    return fails("vkBeginCommandBuffer") ? g_fake->result : VK_SUCCESS;
  }
  static VkResult vkEndCommandBuffer(VkCommandBuffer) {
    return fails("vkEndCommandBuffer") ? g_fake->result : VK_SUCCESS;
  }
  static void vkCmdPipelineBarrier(VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags, VkDependencyFlags,
                                   uint32_t, const VkMemoryBarrier*, uint32_t, const VkBufferMemoryBarrier*, uint32_t,
                                   const VkImageMemoryBarrier*) {
    ++g_fake->commands["barrier"];
  }
  static void vkCmdBindPipeline(VkCommandBuffer, VkPipelineBindPoint, VkPipeline) {}
  static void vkCmdBindDescriptorSets(VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout, uint32_t, uint32_t,
                                      const VkDescriptorSet*, uint32_t, const uint32_t*) {}
  static void vkCmdPushConstants(VkCommandBuffer, VkPipelineLayout, VkShaderStageFlags, uint32_t, uint32_t,
                                 const void*) {}
  static void vkCmdDispatch(VkCommandBuffer, uint32_t, uint32_t, uint32_t) { ++g_fake->commands["dispatch"]; }
  static void vkCmdDispatchIndirect(VkCommandBuffer, VkBuffer, VkDeviceSize) { ++g_fake->commands["indirect"]; }
  static void vkCmdCopyBuffer(VkCommandBuffer, VkBuffer, VkBuffer, uint32_t, const VkBufferCopy*) {
    ++g_fake->commands["copy"];
  }
  static void vkCmdFillBuffer(VkCommandBuffer, VkBuffer, VkDeviceSize, VkDeviceSize, uint32_t) {
    ++g_fake->commands["fill"];
  }

  static VkResult vkCreateSemaphore(VkDevice, const VkSemaphoreCreateInfo*, const VkAllocationCallbacks*,
                                    VkSemaphore* out) {
    g_signalled = 0;
    return make("vkCreateSemaphore", "semaphore", out);
  }
  static void vkDestroySemaphore(VkDevice, VkSemaphore semaphore, const VkAllocationCallbacks*) {
    destroy("semaphore", semaphore);
  }
  static VkResult vkQueueSubmit(VkQueue, uint32_t, const VkSubmitInfo* info, VkFence) {
    if (fails("vkQueueSubmit")) return g_fake->result;
    g_signalled = *static_cast<const VkTimelineSemaphoreSubmitInfo*>(info->pNext)->pSignalSemaphoreValues;
    return VK_SUCCESS;
  }
  static VkResult vkWaitSemaphores(VkDevice, const VkSemaphoreWaitInfo* info, uint64_t) {
    if (fails("vkWaitSemaphores")) return g_fake->result;
    return *info->pValues <= g_signalled ? VK_SUCCESS : VK_TIMEOUT;
  }
};

PFN_vkVoidFunction get(VkInstance, const char* name) {
  if (g_fake->missing == name) return nullptr;
  if (std::strcmp(name, kMatrixQuery) == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<MatrixQuery>(Calls::matrix_properties));
  }
#define TRANSEPT_FAKE(function)                                                                \
  if (std::strcmp(name, #function) == 0) {                                                     \
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_##function>(Calls::function)); \
  }
  TRANSEPT_VULKAN_GLOBAL_FUNCTIONS(TRANSEPT_FAKE)
  TRANSEPT_VULKAN_FUNCTIONS(TRANSEPT_FAKE)
#undef TRANSEPT_FAKE
  return nullptr;
}

}  // namespace

FakeVulkan::FakeVulkan() {
  CHECK(g_fake == nullptr);
  g_fake = this;
  VkPhysicalDeviceProperties& of = device.properties;
  of.apiVersion = VK_API_VERSION_1_3;
  of.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  std::strcpy(of.deviceName, "Fake 9000");
  of.limits.maxStorageBufferRange = 1u << 27;
  of.limits.minStorageBufferOffsetAlignment = 64;
  of.limits.maxComputeWorkGroupInvocations = of.limits.maxComputeWorkGroupSize[0] = 1024;
  of.limits.maxComputeSharedMemorySize = 32768;
  of.limits.maxPushConstantsSize = 128;
  of.limits.maxPerStageDescriptorStorageBuffers = 16;
  std::fill_n(of.limits.maxComputeWorkGroupCount, 3, 65535u);
  device.driver.driverID = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
  std::strcpy(device.driver.driverName, "Fake driver");
  std::strcpy(device.driver.driverInfo, "1.2.3");
  device.memory.memoryHeapCount = 1;
  device.memory.memoryHeaps[0] = {VkDeviceSize{8} << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  device.memory.memoryTypeCount = 2;
  device.memory.memoryTypes[0] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  device.memory.memoryTypes[1] = {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, 0};
}

void FakeVulkan::give_matrices(std::vector<MatrixProperties> matrices) {
  device.matrices = std::move(matrices);
  device.has_matrices = device.has_full_subgroups = true;
  device.extensions.insert(device.extensions.end(), {kMatrixExtension, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME});
}

FakeVulkan::~FakeVulkan() { g_fake = nullptr; }

PFN_vkGetInstanceProcAddr FakeVulkan::entry() const { return get; }

size_t FakeVulkan::num_live() const {
  size_t count = 0;
  for (const auto& [kind, objects] : live) count += objects.size();
  return count;
}

}  // namespace transept::testing
