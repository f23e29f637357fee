#include "device_vulkan/vulkan_device.h"

#include "device_vulkan/cooperative_matrix.h"
#include "device_vulkan/kernels.h"
#include "device_vulkan/matrix_words.h"
#include "device_vulkan/query_device.h"

namespace transept {

StatusOr<std::shared_ptr<VulkanDevice>> VulkanDevice::create(std::shared_ptr<VulkanInstance> instance,
                                                             const VulkanDeviceInfo& info, Options options) {
  if (!info.refusal.empty()) return absl::FailedPreconditionError(str_cat(info.name, ": ", info.refusal));
  std::shared_ptr<VulkanDevice> device(new VulkanDevice(std::move(instance), info, options));
  if (!options.has_matrices) {
    device->info_.half_tile.reset();
    device->info_.int8_tile.reset();
  }
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
  std::vector<const char*> extensions;
  if (has_extension(offered, kSubset)) extensions.push_back(kSubset);

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = info_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.timelineSemaphore = VK_TRUE;
  MatrixFeatures matrices;
  matrices.cooperativeMatrix = VK_TRUE;
  VkPhysicalDeviceSubgroupSizeControlFeatures control{};
  control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  control.pNext = &matrices;
  control.subgroupSizeControl = control.computeFullSubgroups = VK_TRUE;
  if (has_tiles()) {
    features12.pNext = &control;
    features12.vulkanMemoryModel = features12.vulkanMemoryModelDeviceScope = VK_TRUE;
    features12.shaderFloat16 = info_.half_tile.has_value() ? VK_TRUE : VK_FALSE;
    features12.shaderInt8 = info_.int8_tile.has_value() ? VK_TRUE : VK_FALSE;
    extensions.insert(extensions.end(), {kMatrixExtension, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME});
  }
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features12;
  features.features.robustBufferAccess = options_.is_robust ? VK_TRUE : VK_FALSE;  // every device has it
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
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
  ASSIGN_OR_RETURN(result.pipeline, make_pipeline(*shader, result.layout));
  pipelines_.emplace(kernel.name, result.pipeline);
  return result;
}

namespace {

// What kernels/matrix.glsl is specialized by, in the order of its constants.
struct TileConstants {
  MatrixTile tile;
  uint32_t num_subgroups = 0;
};
static_assert(sizeof(TileConstants) == 16);

constexpr VkSpecializationMapEntry kTileEntries[] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}, {3, 12, 4}};

}  // namespace

StatusOr<VkPipeline> VulkanDevice::make_pipeline(const VulkanShader& shader, VkPipelineLayout layout) {
  std::span<const uint32_t> words = options_.is_reversed ? shader.reversed : shader.words;
  std::vector<uint32_t> translated;
  TileConstants constants;
  const VkSpecializationInfo specialization{std::size(kTileEntries), kTileEntries, sizeof constants, &constants};
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroups{};
  subgroups.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  subgroups.requiredSubgroupSize = info_.subgroup_size;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  if (shader.tile != ShaderTile::kNone) {
    const std::optional<MatrixTile>& tile = shader.tile == ShaderTile::kHalf ? info_.half_tile : info_.int8_tile;
    if (!tile.has_value()) return not_found(info_.name, " has no matrices for ", shader.spec->name);
    ASSIGN_OR_RETURN(translated, khr_matrix_words(words));
    words = translated;
    constants = {*tile, kMostLanes / info_.subgroup_size};
    info.stage.pNext = &subgroups;
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    info.stage.pSpecializationInfo = &specialization;
  }
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = words.size_bytes();
  module_info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  TRANSEPT_VULKAN_CALL(functions(), vkCreateShaderModule, device_, &module_info, nullptr, &module);
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.layout = layout;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult made = functions().vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
  functions().vkDestroyShaderModule(device_, module, nullptr);
  RETURN_IF_ERROR(with_prefix(vulkan_status("vkCreateComputePipelines", made), shader.spec->name));
  return pipeline;
}

}  // namespace transept
