// What VK_KHR_cooperative_matrix adds to Vulkan and Debian 12's headers (1.3.239) do not have yet: names of our own, so
// that newer headers may have theirs. Of the extension's specification, revision 2. Of this folder alone.
#pragma once

#define VK_NO_PROTOTYPES 1
#include <vulkan/vulkan_core.h>

#include <cstdint>

namespace transept {

constexpr char kMatrixExtension[] = "VK_KHR_cooperative_matrix";
constexpr char kMatrixQuery[] = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";

constexpr auto kMatrixFeaturesType = static_cast<VkStructureType>(1000506000);
constexpr auto kMatrixPropertiesType = static_cast<VkStructureType>(1000506001);

// VkPhysicalDeviceCooperativeMatrixFeaturesKHR
struct MatrixFeatures {
  VkStructureType sType = kMatrixFeaturesType;
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

// VkComponentTypeKHR; others are listed by newer drivers.
constexpr uint32_t kComponentFloat16 = 0, kComponentFloat32 = 1, kComponentFloat64 = 2, kComponentSint8 = 3,
                   kComponentSint16 = 4, kComponentSint32 = 5, kComponentSint64 = 6, kComponentUint8 = 7,
                   kComponentUint16 = 8, kComponentUint32 = 9, kComponentUint64 = 10;
// VkScopeKHR
constexpr uint32_t kScopeSubgroup = 3;

// VkCooperativeMatrixPropertiesKHR
struct MatrixProperties {
  VkStructureType sType = kMatrixPropertiesType;
  void* pNext = nullptr;
  uint32_t MSize = 0, NSize = 0, KSize = 0;
  uint32_t AType = 0, BType = 0, CType = 0, ResultType = 0;
  VkBool32 saturatingAccumulation = VK_FALSE;
  uint32_t scope = 0;
};
static_assert(sizeof(MatrixProperties) == 56);

using MatrixQuery = VkResult(VKAPI_PTR*)(VkPhysicalDevice device, uint32_t* count, MatrixProperties* properties);

}  // namespace transept
