// An open Vulkan device: its queue and its kernels. Used by one thread at a time, with its memory and streams.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "device_vulkan/device_info.h"
#include "device_vulkan/instance.h"
#include "device_vulkan/vulkan_functions.h"
#include "recording/recording.h"

namespace transept {

struct VulkanShader;

struct VulkanPipeline {
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout operands = VK_NULL_HANDLE;
};

class VulkanDevice final {
 public:
  struct Options {
    bool is_robust = false;    // ranges are checked by the device, which costs time: tests
    bool is_reversed = false;  // kernels with their lanes in reverse: tests
    bool has_matrices = true;  // else info() has no tiles, and the device is opened without them
  };

  // Opens a device of instance->devices(). Errors: kFailedPrecondition, it is refused; kInternal, the driver no longer
  // has it; those of vulkan_status().
  static StatusOr<std::shared_ptr<VulkanDevice>> create(std::shared_ptr<VulkanInstance> instance,
                                                        const VulkanDeviceInfo& info, Options options);
  static StatusOr<std::shared_ptr<VulkanDevice>> create(std::shared_ptr<VulkanInstance> instance,
                                                        const VulkanDeviceInfo& info) {
    return create(std::move(instance), info, {});
  }
  // REQUIRES: its memory and streams are gone.
  ~VulkanDevice();
  VulkanDevice(const VulkanDevice&) = delete;
  VulkanDevice& operator=(const VulkanDevice&) = delete;

  const VulkanFunctions& functions() const { return instance_->functions(); }
  const VulkanDeviceInfo& info() const { return info_; }
  VkPhysicalDevice physical() const { return physical_; }
  VkDevice handle() const { return device_; }
  VkQueue queue() const { return queue_; }

  // The kernel, built when it is asked for first. Errors: kNotFound, there is none of that name, or it needs a tile of
  // matrices that info() does not have; those of
  // vulkan_status(): what was built of it is kept for the next try.
  StatusOr<VulkanPipeline> pipeline(const KernelSpec& kernel);

 private:
  VulkanDevice(std::shared_ptr<VulkanInstance> instance, const VulkanDeviceInfo& info, Options options)
      : instance_(std::move(instance)), info_(info), options_(options) {}
  Status open();
  Status make_layouts(size_t num_operands);
  StatusOr<VkPipeline> make_pipeline(const VulkanShader& shader, VkPipelineLayout layout);
  bool has_tiles() const { return info_.half_tile.has_value() || info_.int8_tile.has_value(); }

  std::shared_ptr<VulkanInstance> instance_;
  VulkanDeviceInfo info_;
  Options options_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  // By the number of operands.
  std::array<VkDescriptorSetLayout, kMaxOperands + 1> operands_{};
  std::array<VkPipelineLayout, kMaxOperands + 1> layouts_{};
  std::map<std::string, VkPipeline, std::less<>> pipelines_;
};

}  // namespace transept
