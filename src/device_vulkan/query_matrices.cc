#include "device_vulkan/query_matrices.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/status.h"
#include "device_vulkan/cooperative_matrix.h"
#include "device_vulkan/kernels.h"

namespace transept {

const char* matrix_number_name(MatrixNumber number) {
  switch (number) {
    case MatrixNumber::kFloat16: return "float16";
    case MatrixNumber::kFloat32: return "float32";
    case MatrixNumber::kInt8: return "int8";
    case MatrixNumber::kInt32: return "int32";
    case MatrixNumber::kUint8: return "uint8";
    case MatrixNumber::kUint32: return "uint32";
    case MatrixNumber::kOther: break;
  }
  return "another type";
}

std::string matrix_kind_text(const MatrixKind& kind) {
  const std::string b = kind.a == kind.b ? "" : str_cat(" by ", matrix_number_name(kind.b));
  return str_cat(kind.tile.m, "x", kind.tile.n, "x", kind.tile.k, " ", matrix_number_name(kind.a), b, " to ",
                 matrix_number_name(kind.sum));
}

namespace {

constexpr uint32_t kMostListed = 4096;

MatrixNumber number_of(uint32_t component) {
  switch (component) {
    case kComponentFloat16: return MatrixNumber::kFloat16;
    case kComponentFloat32: return MatrixNumber::kFloat32;
    case kComponentSint8: return MatrixNumber::kInt8;
    case kComponentSint32: return MatrixNumber::kInt32;
    case kComponentUint8: return MatrixNumber::kUint8;
    case kComponentUint32: return MatrixNumber::kUint32;
    default: return MatrixNumber::kOther;
  }
}

StatusOr<std::vector<MatrixKind>> list_kinds(MatrixQuery query, VkPhysicalDevice device) {
  uint32_t count = 0;
  RETURN_IF_ERROR(vulkan_status(kMatrixQuery, query(device, &count, nullptr)));
  std::vector<MatrixProperties> listed(std::min(count, kMostListed));
  count = static_cast<uint32_t>(listed.size());
  RETURN_IF_ERROR(vulkan_status(kMatrixQuery, query(device, &count, listed.data())));
  listed.resize(std::min<size_t>(count, listed.size()));
  std::vector<MatrixKind> kinds;
  for (const MatrixProperties& of : listed) {
    if (of.scope != kScopeSubgroup || of.saturatingAccumulation != VK_FALSE || of.CType != of.ResultType) continue;
    const MatrixKind kind{
        {of.MSize, of.NSize, of.KSize}, number_of(of.AType), number_of(of.BType), number_of(of.CType)};
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

bool is_one_of(uint32_t value, std::initializer_list<uint32_t> values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// What kernels/matrix.glsl has room for.
bool fits(const MatrixTile& tile, uint32_t max_shared) {
  return is_one_of(tile.m, {8, 16}) && is_one_of(tile.n, {8, 16, 32}) && is_one_of(tile.k, {8, 16, 32}) &&
         matrix_shared_bytes(tile) <= max_shared;
}

// The largest that fits; the first of equal ones.
std::optional<MatrixTile> largest(std::span<const MatrixKind> kinds, MatrixNumber of, MatrixNumber sum,
                                  uint32_t max_shared) {
  const auto size = [](const MatrixTile& tile) { return tile.m * tile.n * tile.k; };
  std::optional<MatrixTile> best;
  for (const MatrixKind& kind : kinds) {
    if (kind.a != of || kind.b != of || kind.sum != sum || !fits(kind.tile, max_shared)) continue;
    if (!best.has_value() || size(kind.tile) > size(*best)) best = kind.tile;
  }
  return best;
}

// Whether kernels may count on whole subgroups of the size that the driver names; else why not.
std::string check_subgroups(const VulkanFunctions& functions, VkPhysicalDevice device, const VulkanDeviceInfo& info,
                            bool* has_matrices) {
  // GL_NV_cooperative_matrix is compiled with it; kernels without have barriers of the device's scope.
  VkPhysicalDeviceVulkanMemoryModelFeatures model{};
  model.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES;
  VkPhysicalDeviceSubgroupSizeControlFeatures control{};
  control.pNext = &model;
  control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  MatrixFeatures matrices;
  matrices.pNext = &control;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &matrices;
  functions.vkGetPhysicalDeviceFeatures2(device, &features);
  *has_matrices = matrices.cooperativeMatrix != VK_FALSE;
  VkPhysicalDeviceSubgroupSizeControlProperties sizes{};
  sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &sizes;
  functions.vkGetPhysicalDeviceProperties2(device, &properties);
  const bool is_controlled = control.subgroupSizeControl != VK_FALSE && control.computeFullSubgroups != VK_FALSE &&
                             (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  const uint32_t size = info.subgroup_size;
  const bool is_size = std::has_single_bit(size) && size >= 4 && size <= kMostLanes && size >= sizes.minSubgroupSize &&
                       size <= sizes.maxSubgroupSize;
  const bool has_model = model.vulkanMemoryModel != VK_FALSE && model.vulkanMemoryModelDeviceScope != VK_FALSE;
  if (!has_model) return "its driver has no memory model of Vulkan";
  if (!is_controlled) return "its driver does not let kernels choose the size of subgroups";
  return is_size ? "" : str_cat("its subgroups of ", size, " lanes are none that matrices are divided among");
}

}  // namespace

void take_matrices(const VulkanFunctions& functions, VkPhysicalDevice device,
                   std::span<const VkExtensionProperties> extensions, uint32_t max_shared, VulkanDeviceInfo& info) {
  info.has_matrix = has_extension(extensions, kMatrixExtension);
  const auto query = reinterpret_cast<MatrixQuery>(functions.query_matrices);
  if (!info.has_matrix) {
    info.no_matrices = str_cat("its driver has no ", kMatrixExtension);
  } else if (query == nullptr) {
    info.no_matrices = str_cat("the system's Vulkan has no ", kMatrixQuery);
  } else if (!has_extension(extensions, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) {
    info.no_matrices = str_cat("its driver has no ", VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  }
  if (!info.no_matrices.empty()) return;
  bool has_matrices = false;
  const std::string problem = check_subgroups(functions, device, info, &has_matrices);
  const StatusOr<std::vector<MatrixKind>> kinds = list_kinds(query, device);
  if (kinds.ok()) info.matrices = *kinds;
  if (!has_matrices) {
    info.no_matrices = "its driver lists matrices, and does not offer them";
  } else if (!kinds.ok()) {
    info.no_matrices = error_message(kinds.status());
  } else if (info.alias == "lavapipe" && info.subgroup_size > 8) {
    info.no_matrices = "lavapipe ends the process in matrices where its vectors have 512 bits";  // seen with Mesa 26.1
  } else {
    info.no_matrices = problem;
  }
  if (!info.no_matrices.empty()) return;
  if (info.has_float16) {
    info.half_tile = largest(info.matrices, MatrixNumber::kFloat16, MatrixNumber::kFloat32, max_shared);
  }
  if (info.has_int8) info.int8_tile = largest(info.matrices, MatrixNumber::kInt8, MatrixNumber::kInt32, max_shared);
  if (!info.half_tile.has_value() && !info.int8_tile.has_value()) {
    info.no_matrices = "none of its matrices is one that products are made of";
  }
}

}  // namespace transept
