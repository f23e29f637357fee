#include "device_vulkan/vulkan_functions.h"

#include <algorithm>
#include <cstring>

#include "device_vulkan/cooperative_matrix.h"

namespace transept {
namespace {

template <typename Function>
Status find(PFN_vkGetInstanceProcAddr get, VkInstance instance, const char* name, Function& function) {
  function = reinterpret_cast<Function>(get(instance, name));
  return function != nullptr ? ok_status() : not_found("the system's Vulkan has no ", name, ": it is older than 1.2");
}

}  // namespace

Status VulkanFunctions::find_global() {
#define TRANSEPT_FIND(name) RETURN_IF_ERROR(find(get, VK_NULL_HANDLE, #name, name));
  TRANSEPT_VULKAN_GLOBAL_FUNCTIONS(TRANSEPT_FIND)
#undef TRANSEPT_FIND
  return ok_status();
}

Status VulkanFunctions::find_others(VkInstance instance) {
#define TRANSEPT_FIND(name) RETURN_IF_ERROR(find(get, instance, #name, name));
  TRANSEPT_VULKAN_FUNCTIONS(TRANSEPT_FIND)
#undef TRANSEPT_FIND
  query_matrices = get(instance, kMatrixQuery);
  return ok_status();
}

bool has_extension(std::span<const VkExtensionProperties> extensions, std::string_view name) {
  return std::any_of(extensions.begin(), extensions.end(), [&](const VkExtensionProperties& extension) {
    return std::string_view(extension.extensionName, ::strnlen(extension.extensionName, VK_MAX_EXTENSION_NAME_SIZE)) ==
           name;
  });
}

std::string vulkan_result_name(VkResult result) {
#define TRANSEPT_RESULT(name) \
  case name: return #name;
  switch (result) {
    TRANSEPT_RESULT(VK_SUCCESS)
    TRANSEPT_RESULT(VK_NOT_READY)
    TRANSEPT_RESULT(VK_TIMEOUT)
    TRANSEPT_RESULT(VK_INCOMPLETE)
    TRANSEPT_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY)
    TRANSEPT_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    TRANSEPT_RESULT(VK_ERROR_INITIALIZATION_FAILED)
    TRANSEPT_RESULT(VK_ERROR_DEVICE_LOST)
    TRANSEPT_RESULT(VK_ERROR_MEMORY_MAP_FAILED)
    TRANSEPT_RESULT(VK_ERROR_LAYER_NOT_PRESENT)
    TRANSEPT_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT)
    TRANSEPT_RESULT(VK_ERROR_FEATURE_NOT_PRESENT)
    TRANSEPT_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER)
    TRANSEPT_RESULT(VK_ERROR_TOO_MANY_OBJECTS)
    TRANSEPT_RESULT(VK_ERROR_FRAGMENTED_POOL)
    TRANSEPT_RESULT(VK_ERROR_OUT_OF_POOL_MEMORY)
    TRANSEPT_RESULT(VK_ERROR_UNKNOWN)
    default: return str_cat("VkResult ", static_cast<int32_t>(result));
  }
#undef TRANSEPT_RESULT
}

Status vulkan_status(std::string_view call, VkResult result) {
  if (result == VK_SUCCESS || result == VK_INCOMPLETE) return ok_status();
  const std::string message = str_cat(call, ": ", vulkan_result_name(result));
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_TOO_MANY_OBJECTS: return absl::ResourceExhaustedError(message);
    case VK_ERROR_DEVICE_LOST: return absl::UnavailableError(message);
    case VK_TIMEOUT: return absl::DeadlineExceededError(message);
    default: return absl::InternalError(message);
  }
}

}  // namespace transept
