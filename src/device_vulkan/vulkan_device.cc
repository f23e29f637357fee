#include "device_vulkan/vulkan_device.h"

#include "device_vulkan/kernels.h"
#include "device_vulkan/query_device.h"

namespace transept {

StatusOr<std::shared_ptr<VulkanDevice>> VulkanDevice::create(std::shared_ptr<VulkanInstance> instance,
                                                             const VulkanDeviceInfo& info, Options options) {
  if (!info.refusal.empty()) return absl::FailedPreconditionError(str_cat(info.name, ": ", info.refusal));
  std::shared_ptr<VulkanDevice> device(new VulkanDevice(std::move(instance), info, options));
  RETURN_IF_ERROR(device->open());
  return device;
}

Status VulkanDevice::open() {
  ASSIGN_OR_RETURN(const std::vector<VkPhysicalDevice> handles, instance_->handles());
  const auto index = static_cast<size_t>(info_.index);
  if (index >= handles.size()) return absl::InternalError(str_cat(info_.name, " has gone"));
  physical_ = handles[index];
  ASSIGN_OR_RETURN(const std::vector<VkExtensionProperties> offered, query_extensions(functions(), physical_));
  constexpr char kSubset[] = "VK_KHR_portability_subset";  // has to be asked for where it is there
  const char* extensions[] = {kSubset};

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = info_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.timelineSemaphore = VK_TRUE;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features12;
  features.features.robustBufferAccess = options_.is_robust ? VK_TRUE : VK_FALSE;  // every device has it
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = has_extension(offered, kSubset) ? 1 : 0;
  info.ppEnabledExtensionNames = extensions;
  TRANSEPT_VULKAN_CALL(functions(), vkCreateDevice, physical_, &info, nullptr, &device_);
  functions().vkGetDeviceQueue(device_, info_.queue_family, 0, &queue_);
  return ok_status();
}

VulkanDevice::~VulkanDevice() {
  if (device_ == VK_NULL_HANDLE) return;
  const VulkanFunctions& f = functions();
  for (const auto& [name, pipeline] : pipelines_) f.vkDestroyPipeline(device_, pipeline, nullptr);
  for (const VkPipelineLayout layout : layouts_) f.vkDestroyPipelineLayout(device_, layout, nullptr);
  for (const VkDescriptorSetLayout layout : operands_) f.vkDestroyDescriptorSetLayout(device_, layout, nullptr);
  f.vkDestroyDevice(device_, nullptr);
}

Status VulkanDevice::make_layouts(size_t num_operands) {
  VkDescriptorSetLayout& operands = operands_[num_operands];
  if (operands == VK_NULL_HANDLE) {
    std::array<VkDescriptorSetLayoutBinding, kMaxOperands> bindings{};
    for (size_t i = 0; i < num_operands; ++i) {
      bindings[i] = {static_cast<uint32_t>(i), VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                     nullptr};
    }
    VkDescriptorSetLayoutCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    info.bindingCount = static_cast<uint32_t>(num_operands);
    info.pBindings = bindings.data();
    TRANSEPT_VULKAN_CALL(functions(), vkCreateDescriptorSetLayout, device_, &info, nullptr, &operands);
  }
  VkPipelineLayout& layout = layouts_[num_operands];
  if (layout != VK_NULL_HANDLE) return ok_status();
  const VkPushConstantRange arguments{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &operands;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &arguments;
  return vulkan_status("vkCreatePipelineLayout", functions().vkCreatePipelineLayout(device_, &info, nullptr, &layout));
}

StatusOr<VulkanPipeline> VulkanDevice::pipeline(const KernelSpec& kernel) {
  const VulkanShader* shader = find_shader(kernel.name);
  if (shader == nullptr) return not_found("the Vulkan device has no kernel ", kernel.name);
  const size_t num_operands = kernel.operands.size();
  RETURN_IF_ERROR(make_layouts(num_operands));
  VulkanPipeline result{VK_NULL_HANDLE, layouts_[num_operands], operands_[num_operands]};
  if (const auto found = pipelines_.find(kernel.name); found != pipelines_.end()) {
    result.pipeline = found->second;
    return result;
  }
  const std::span<const uint32_t> words = options_.is_reversed ? shader->reversed : shader->words;
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = words.size_bytes();
  module_info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  TRANSEPT_VULKAN_CALL(functions(), vkCreateShaderModule, device_, &module_info, nullptr, &module);
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.layout = result.layout;
  const VkResult made =
      functions().vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &result.pipeline);
  functions().vkDestroyShaderModule(device_, module, nullptr);
  RETURN_IF_ERROR(with_prefix(vulkan_status("vkCreateComputePipelines", made), kernel.name));
  pipelines_.emplace(kernel.name, result.pipeline);
  return result;
}

}  // namespace transept
