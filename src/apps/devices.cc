// `transept devices`: the Vulkan devices of this machine, and why each could not be used.
#include <cstdio>

#include "apps/exit_codes.h"
#include "apps/verbs.h"
#include "base/json.h"
#include "device_vulkan/list_devices.h"
#include "device_vulkan/pick_device.h"

namespace transept {
namespace {

// Whether products are made of such matrices.
bool is_multiplied_with(const VulkanDeviceInfo& device, const MatrixKind& kind) {
  if (kind.a != kind.b) return false;
  if (kind.a == MatrixNumber::kFloat16) return kind.sum == MatrixNumber::kFloat32 && device.half_tile == kind.tile;
  return kind.a == MatrixNumber::kInt8 && kind.sum == MatrixNumber::kInt32 && device.int8_tile == kind.tile;
}

struct FeatureName {
  const char* name;
  bool VulkanDeviceInfo::*has;
};
constexpr FeatureName kFeatures[] = {{"float16", &VulkanDeviceInfo::has_float16},
                                     {"int8", &VulkanDeviceInfo::has_int8},
                                     {"dot", &VulkanDeviceInfo::has_dot},
                                     {"matrix", &VulkanDeviceInfo::has_matrix}};

Json matrices_json(const VulkanDeviceInfo& device) {
  Json list = Json::array();
  for (const MatrixKind& kind : device.matrices) {
    Json json = Json::object();
    json.set("m", static_cast<int64_t>(kind.tile.m));
    json.set("n", static_cast<int64_t>(kind.tile.n));
    json.set("k", static_cast<int64_t>(kind.tile.k));
    json.set("a", matrix_number_name(kind.a));
    json.set("b", matrix_number_name(kind.b));
    json.set("sum", matrix_number_name(kind.sum));
    json.set("multiplies", is_multiplied_with(device, kind));
    list.push_back(std::move(json));
  }
  return list;
}

// Those that products are made of, or why there are none.
std::string matrices_text(const VulkanDeviceInfo& device) {
  std::vector<std::string> kinds;
  for (const MatrixKind& kind : device.matrices) {
    if (is_multiplied_with(device, kind)) kinds.push_back(matrix_kind_text(kind));
  }
  return kinds.empty() ? str_cat("none: ", device.no_matrices) : join(kinds, ", ");
}

Json device_json(const VulkanDeviceInfo& device) {
  const std::string why = why_left_out(device);
  Json features = Json::object();
  for (const FeatureName& feature : kFeatures) features.set(feature.name, device.*feature.has);
  Json json = Json::object();
  json.set("device", str_cat("vulkan:", device.index));
  json.set("name", device.name);
  json.set("alias", device.alias.empty() ? Json() : Json(device.alias));
  json.set("type", device_type_name(device.type));
  json.set("driver", device.driver);
  json.set("driver_version", device.driver_version);
  json.set("vulkan", device.vulkan_version);
  json.set("memory_bytes", device.memory_bytes);
  json.set("free_bytes", device.free_bytes);
  json.set("max_range_bytes", device.max_range);
  json.set("subgroup_size", static_cast<int64_t>(device.subgroup_size));
  json.set("features", std::move(features));
  json.set("matrices", matrices_json(device));
  json.set("no_matrices", device.no_matrices.empty() ? Json() : Json(device.no_matrices));
  json.set("usable", why.empty());
  json.set("reason", why.empty() ? Json() : Json(why));
  return json;
}

std::string device_text(const VulkanDeviceInfo& device) {
  const std::string why = why_left_out(device);
  std::vector<std::string> features;
  for (const FeatureName& feature : kFeatures) {
    if (device.*feature.has) features.emplace_back(feature.name);
  }
  return str_cat("vulkan:", device.index, "  ", device.name, " (", device_type_name(device.type), ")\n", "  driver    ",
                 device.driver, ", ", device.driver_version, ", Vulkan ", device.vulkan_version, "\n", "  memory    ",
                 format_bytes(device.memory_bytes), ", ", format_bytes(device.free_bytes), " free\n", "  features  ",
                 features.empty() ? "none of float16, int8, dot, matrix" : join(features, ", "), "\n", "  matrices  ",
                 matrices_text(device), "\n", "  usable    ", why.empty() ? "yes" : str_cat("no: ", why), "\n");
}

}  // namespace

int run_devices(const Flags& flags) {
  if (!flags.positional().empty()) return usage_error("devices", invalid_argument("takes no arguments, only flags"));
  const StatusOr<std::vector<VulkanDeviceInfo>> devices = list_vulkan_devices();
  if (!devices.ok()) return usage_error("devices", devices.status());
  if (devices->empty()) return usage_error("devices", pick_vulkan_device(*devices, "vulkan").status());
  std::string text;
  if (flags.is_on("json")) {
    Json list = Json::array();
    for (const VulkanDeviceInfo& device : *devices) list.push_back(device_json(device));
    Json report = Json::object();
    report.set("devices", std::move(list));
    text = report.dump() + "\n";
  } else {
    for (const VulkanDeviceInfo& device : *devices) text += device_text(device);
    text += "--device vulkan:N runs a model on one. docs/devices.md says what does not run there yet.\n";
  }
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

}  // namespace transept
