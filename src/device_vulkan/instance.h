// A connection to the system's Vulkan, and what it says of its devices. Thread-safe but for its construction.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "device_vulkan/device_info.h"
#include "device_vulkan/vulkan_functions.h"

namespace transept {

class VulkanInstance final {
 public:
  struct Options {
    // Khronos' validation layer, with its checks of barriers, tells each problem that it sees; null: it is not loaded.
    // Called on any thread. For tests: VK_ERROR_LAYER_NOT_PRESENT where it is not installed.
    std::function<void(std::string_view message)> on_problem = nullptr;
  };

  // Errors: kNotFound, the loader lacks a function; those of vulkan_status().
  static StatusOr<std::shared_ptr<VulkanInstance>> create(PFN_vkGetInstanceProcAddr entry, Options options);
  static StatusOr<std::shared_ptr<VulkanInstance>> create(PFN_vkGetInstanceProcAddr entry) { return create(entry, {}); }
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance&) = delete;
  VulkanInstance& operator=(const VulkanInstance&) = delete;

  const VulkanFunctions& functions() const { return functions_; }
  // In the driver's order. Numbers that a driver may not give are a refusal.
  StatusOr<std::vector<VulkanDeviceInfo>> devices() const;
  // The handles, in the same order.
  StatusOr<std::vector<VkPhysicalDevice>> handles() const;

 private:
  explicit VulkanInstance(Options options) : options_(std::move(options)) {}
  Status open(PFN_vkGetInstanceProcAddr entry);
  Status listen();

  Options options_;
  VulkanFunctions functions_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

}  // namespace transept
