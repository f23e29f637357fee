#include "device_vulkan/pick_device.h"

#include <charconv>
#include <optional>
#include <vector>

#include "base/ascii.h"
#include "base/quoted.h"

namespace transept {
namespace {

constexpr std::string_view kVulkan = "vulkan";
constexpr VulkanDeviceType kByPreference[] = {VulkanDeviceType::kDiscrete, VulkanDeviceType::kIntegrated,
                                              VulkanDeviceType::kVirtual, VulkanDeviceType::kOther};

bool has_text(const std::string& text, const std::string& lower_case) {
  return ascii_lower(text).find(lower_case) != std::string::npos;
}

std::string described(const VulkanDeviceInfo& device, std::string_view why) {
  return str_cat("vulkan:", device.index, " (", device.name, "): ", why);
}

StatusOr<size_t> first_usable(std::span<const VulkanDeviceInfo> devices) {
  for (const VulkanDeviceType type : kByPreference) {
    for (size_t i = 0; i < devices.size(); ++i) {
      if (devices[i].type == type && devices[i].refusal.empty()) return i;
    }
  }
  std::vector<std::string> reasons;
  for (const VulkanDeviceInfo& device : devices) reasons.push_back(described(device, why_left_out(device)));
  if (reasons.empty()) return not_found("Vulkan has no device here: install the driver of your card");
  return not_found("no Vulkan device can be used: ", join(reasons, "; "));
}

StatusOr<size_t> by_number(std::span<const VulkanDeviceInfo> devices, std::string_view digits) {
  uint32_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  for (size_t i = 0; i < devices.size() && parsed.ec == std::errc(); ++i) {
    const VulkanDeviceInfo& device = devices[i];
    if (static_cast<uint32_t>(device.index) != number) continue;
    if (const std::string why = why_left_out(device); !why.empty()) return not_found(described(device, why));
    return i;
  }
  return not_found("there is no vulkan:", digits, "; transept devices lists ", devices.size());
}

StatusOr<size_t> by_text(std::span<const VulkanDeviceInfo> devices, const std::string& text) {
  std::optional<size_t> found;
  std::vector<std::string> reasons;
  for (size_t i = 0; i < devices.size(); ++i) {
    const VulkanDeviceInfo& device = devices[i];
    if (!has_text(device.name, text) && !has_text(device.alias, text) && !has_text(device.driver, text)) continue;
    if (!device.refusal.empty()) {
      reasons.push_back(described(device, device.refusal));
    } else if (!found.has_value()) {
      found = i;
    } else if (devices[*found].name != device.name) {
      return invalid_argument("vulkan:", text, " means vulkan:", devices[*found].index, " (", devices[*found].name,
                              ") and vulkan:", device.index, " (", device.name, "): give a number");
    }
  }
  if (found.has_value()) return *found;
  if (!reasons.empty()) return not_found(join(reasons, "; "));
  return not_found("no Vulkan device is named ", in_quotes(text), "; transept devices lists ", devices.size());
}

}  // namespace

std::string why_left_out(const VulkanDeviceInfo& device) {
  if (!device.refusal.empty()) return device.refusal;
  if (device.type != VulkanDeviceType::kCpu) return "";
  return str_cat("it computes on the processor, as Transept does without it; its name alone means it: vulkan:",
                 device.alias.empty() ? device.name : device.alias);
}

StatusOr<size_t> pick_vulkan_device(std::span<const VulkanDeviceInfo> devices, std::string_view name) {
  if (name == kVulkan) return first_usable(devices);
  const bool has_choice = name.starts_with(kVulkan) && name.substr(kVulkan.size()).starts_with(':');
  const std::string_view choice = has_choice ? name.substr(kVulkan.size() + 1) : std::string_view();
  if (choice.empty()) return invalid_argument(in_quotes(name), ": vulkan, vulkan:NUMBER or vulkan:NAME");
  if (choice.find_first_not_of("0123456789") == std::string_view::npos) return by_number(devices, choice);
  return by_text(devices, ascii_lower(choice));
}

}  // namespace transept
