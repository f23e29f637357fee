// The kind of device that --device vulkan means. Immutable: thread-safe.
#pragma once

#include <memory>
#include <string>

#include "device_vulkan/open_vulkan.h"
#include "rank/devices.h"

namespace transept {

// Opens the device that `name` means (device_vulkan/pick_device.h). Errors: those of open_vulkan_device().
StatusOr<std::shared_ptr<const DeviceKind>> open_vulkan_kind(const std::string& name, VulkanOpening opening = {});

}  // namespace transept
