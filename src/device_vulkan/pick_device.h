// Which device a name means. Pure: thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "device_vulkan/device_info.h"

namespace transept {

// Returns the index in `devices` of what `name` asks for: "vulkan", the first usable one of the best type (discrete,
// integrated, virtual, other); "vulkan:N", the device with that index; "vulkan:TEXT", the one whose name, alias or
// driver has the text (case does not matter), the first of equals. A device of type CPU, which computes on the
// processor, is meant by its name alone: a machine without a usable driver offers one.
// Errors: kInvalidArgument, `name` is none of these, or means several unequal devices; kNotFound, no device fits, or
// each that fits is refused: says why for each.
StatusOr<size_t> pick_vulkan_device(std::span<const VulkanDeviceInfo> devices, std::string_view name);

// Why "vulkan" alone leaves the device out: its refusal, or that it is the processor; "": it does not.
std::string why_left_out(const VulkanDeviceInfo& device);

}  // namespace transept
