#include "device_vulkan/list_devices.h"

#ifdef TRANSEPT_VULKAN
#include "device_vulkan/instance.h"
#include "device_vulkan/vulkan_library.h"
#endif

namespace transept {

#ifdef TRANSEPT_VULKAN
bool has_vulkan() { return true; }

StatusOr<std::vector<VulkanDeviceInfo>> list_vulkan_devices() {
  ASSIGN_OR_RETURN(const PFN_vkGetInstanceProcAddr entry, load_vulkan());
  ASSIGN_OR_RETURN(const std::shared_ptr<VulkanInstance> instance, VulkanInstance::create(entry));
  return instance->devices();
}
#else
bool has_vulkan() { return false; }

StatusOr<std::vector<VulkanDeviceInfo>> list_vulkan_devices() {
  return unimplemented("this build has no Vulkan device (libvulkan-dev, glslang-tools)");
}
#endif

}  // namespace transept
