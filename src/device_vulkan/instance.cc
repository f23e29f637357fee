#include "device_vulkan/instance.h"

#include <algorithm>
#include <cstring>

#include "device_vulkan/query_device.h"

namespace transept {
namespace {

constexpr uint32_t kMostDevices = 64;
constexpr char kPortability[] = "VK_KHR_portability_enumeration";

VKAPI_ATTR VkBool32 VKAPI_CALL tell(VkDebugUtilsMessageSeverityFlagBitsEXT /*severity*/,
                                    VkDebugUtilsMessageTypeFlagsEXT /*types*/,
                                    const VkDebugUtilsMessengerCallbackDataEXT* data, void* options) {
  static_cast<const VulkanInstance::Options*>(options)->on_problem(data->pMessage);
  return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info(VulkanInstance::Options& options) {
  VkDebugUtilsMessengerCreateInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = tell;
  info.pUserData = &options;
  return info;
}

}  // namespace

StatusOr<std::shared_ptr<VulkanInstance>> VulkanInstance::create(PFN_vkGetInstanceProcAddr entry, Options options) {
  std::shared_ptr<VulkanInstance> instance(new VulkanInstance(std::move(options)));
  RETURN_IF_ERROR(instance->open(entry));
  return instance;
}

Status VulkanInstance::open(PFN_vkGetInstanceProcAddr entry) {
  functions_.get = entry;
  RETURN_IF_ERROR(functions_.find_global());
  uint32_t version = 0;
  TRANSEPT_VULKAN_CALL(functions_, vkEnumerateInstanceVersion, &version);
  if (version < VK_API_VERSION_1_1) return not_found("the system's Vulkan is older than 1.1");

  uint32_t count = 0;
  TRANSEPT_VULKAN_CALL(functions_, vkEnumerateInstanceExtensionProperties, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> offered(std::min(count, uint32_t{4096}));
  count = static_cast<uint32_t>(offered.size());
  TRANSEPT_VULKAN_CALL(functions_, vkEnumerateInstanceExtensionProperties, nullptr, &count, offered.data());
  offered.resize(std::min<size_t>(count, offered.size()));

  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "transept";
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  std::vector<const char*> extensions, layers;
  if (has_extension(offered, kPortability)) {  // MoltenVK is a driver of this kind
    extensions.push_back(kPortability);
    info.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  const VkValidationFeatureEnableEXT enabled[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT validation{};
  validation.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  validation.enabledValidationFeatureCount = 1;
  validation.pEnabledValidationFeatures = enabled;
  if (options_.on_problem != nullptr) {
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    layers.push_back("VK_LAYER_KHRONOS_validation");
    info.pNext = &validation;
  }
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  info.enabledLayerCount = static_cast<uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  const VkResult created = functions_.vkCreateInstance(&info, nullptr, &instance_);
  const Status status = vulkan_status("vkCreateInstance", created);
  if (created == VK_ERROR_INCOMPATIBLE_DRIVER) {
    return not_found("Vulkan has no driver here: install the driver of your card (", error_message(status), ")");
  }
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(functions_.find_others(instance_));
  return options_.on_problem != nullptr ? listen() : ok_status();
}

Status VulkanInstance::listen() {
  const auto create =
      reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(functions_.get(instance_, "vkCreateDebugUtilsMessengerEXT"));
  if (create == nullptr) return not_found("the validation layer tells nothing");
  const VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(options_);
  return vulkan_status("vkCreateDebugUtilsMessengerEXT", create(instance_, &info, nullptr, &messenger_));
}

VulkanInstance::~VulkanInstance() {
  if (instance_ == VK_NULL_HANDLE) return;
  if (messenger_ != VK_NULL_HANDLE) {
    const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        functions_.get(instance_, "vkDestroyDebugUtilsMessengerEXT"));
    if (destroy != nullptr) destroy(instance_, messenger_, nullptr);
  }
  // Found apart: an instance whose other functions are not there has to go too.
  const auto destroy = reinterpret_cast<PFN_vkDestroyInstance>(functions_.get(instance_, "vkDestroyInstance"));
  if (destroy != nullptr) destroy(instance_, nullptr);
}

StatusOr<std::vector<VkPhysicalDevice>> VulkanInstance::handles() const {
  uint32_t count = 0;
  TRANSEPT_VULKAN_CALL(functions_, vkEnumeratePhysicalDevices, instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(std::min(count, kMostDevices));
  count = static_cast<uint32_t>(devices.size());
  if (count > 0) TRANSEPT_VULKAN_CALL(functions_, vkEnumeratePhysicalDevices, instance_, &count, devices.data());
  devices.resize(std::min<size_t>(count, devices.size()));
  std::erase(devices, VkPhysicalDevice{VK_NULL_HANDLE});  // where it claimed more than it gave
  return devices;
}

StatusOr<std::vector<VulkanDeviceInfo>> VulkanInstance::devices() const {
  ASSIGN_OR_RETURN(const std::vector<VkPhysicalDevice> found, handles());
  std::vector<VulkanDeviceInfo> infos;
  for (size_t i = 0; i < found.size(); ++i) {
    VulkanDeviceInfo info = query_device(functions_, found[i]);
    info.index = static_cast<int32_t>(i);
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace transept
