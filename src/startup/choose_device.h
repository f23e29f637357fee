// What --device means, and what does not go with it. Functions without state: thread-safe.
#pragma once

#include <memory>

#include "base/status.h"
#include "rank/devices.h"
#include "startup/engine_config.h"

namespace transept {

inline bool is_vulkan(const EngineConfig& config) { return config.device.starts_with("vulkan"); }

// Refuses the flags that such a device does not go with, by name. Asks no driver.
Status check_device_flags(const EngineConfig& config);

// Opens the device; null: the processor (auto, cpu). Loads libvulkan only for a Vulkan device. Errors: those of
// check_device_flags() and of open_vulkan_kind(). REQUIRES: check_features() took the
// device.
StatusOr<std::shared_ptr<const DeviceKind>> choose_device(const EngineConfig& config);

}  // namespace transept
