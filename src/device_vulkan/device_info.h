// What a Vulkan device is, without Vulkan's own types: what `transept devices` lists and devices are picked from. A
// value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device_vulkan/matrix_kinds.h"

namespace transept {

enum class VulkanDeviceType : uint8_t { kOther, kIntegrated, kDiscrete, kVirtual, kCpu };

struct VulkanDeviceInfo {
  int32_t index = 0;  // among the driver's devices: vulkan:INDEX
  std::string name;   // the device's own
  std::string alias;  // another name of it: "lavapipe" for Mesa's; ""
  std::string driver, driver_version;
  std::string vulkan_version;  // "1.3.230"
  VulkanDeviceType type = VulkanDeviceType::kOther;

  uint64_t memory_bytes = 0;     // of its own
  uint64_t free_bytes = 0;       // of these, by the driver's budget; without one all
  uint64_t max_range = 0;        // bytes that an op may reach in one range
  uint64_t max_allocation = 0;   // bytes
  uint32_t range_alignment = 1;  // a power of two
  uint32_t max_operands = 0;     // of a kernel
  std::array<uint32_t, 3> max_groups{};
  uint32_t queue_family = 0;
  uint32_t subgroup_size = 0;

  // Options that kernels may use; none is needed.
  bool has_float16 = false, has_int8 = false, has_dot = false, has_matrix = false, has_budget = false;

  // Of its matrix units, those of a subgroup that do not saturate.
  std::vector<MatrixKind> matrices;
  // What products of float16 and int8 are made of. None: of shader cores' arithmetic; `no_matrices` says why both are
  // none.
  std::optional<MatrixTile> half_tile, int8_tile;
  std::string no_matrices;

  std::string refusal;  // why it cannot be used; "": it can
};

inline const char* device_type_name(VulkanDeviceType type) {
  switch (type) {
    case VulkanDeviceType::kIntegrated: return "integrated";
    case VulkanDeviceType::kDiscrete: return "discrete";
    case VulkanDeviceType::kVirtual: return "virtual";
    case VulkanDeviceType::kCpu: return "cpu";
    case VulkanDeviceType::kOther: break;
  }
  return "other";
}

}  // namespace transept
