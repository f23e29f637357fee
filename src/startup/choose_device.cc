#include "startup/choose_device.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "rank/vulkan_kind.h"

namespace transept {
namespace {

// How a Vulkan device makes products.
Status check_product_flags(const EngineConfig& config) {
  const auto check = [&](std::string_view flag, const std::string& value, std::string_view otherwise,
                         std::initializer_list<std::string_view> others) -> Status {
    if (value == otherwise) return ok_status();
    if (std::find(others.begin(), others.end(), value) == others.end()) {
      return invalid_argument("--", flag, " ", value, ": unknown; one of ", otherwise, ", ",
                              join({others.begin(), others.end()}, ", "));
    }
    if (is_vulkan(config)) return ok_status();
    return invalid_argument("--", flag, " ", value, " is of a Vulkan device alone, and --device is ", config.device);
  };
  RETURN_IF_ERROR(check("device-matrices", config.device_matrices, "auto", {"on", "off"}));
  RETURN_IF_ERROR(check("device-arithmetic", config.device_arithmetic, "float32", {"float16"}));
  if (config.device_matrices == "off" && config.device_arithmetic == "float16") {
    return invalid_argument("--device-arithmetic float16 is made by matrices, and --device-matrices is off");
  }
  return ok_status();
}

}  // namespace

// Everything that a Vulkan device does not do yet, and the flag that asks for it.
Status check_device_flags(const EngineConfig& config) {
  RETURN_IF_ERROR(check_product_flags(config));
  if (!is_vulkan(config)) return ok_status();
  const auto refuse = [&](std::string_view flag, const auto& value, std::string_view why) {
    return unimplemented("--device ", config.device, " with --", flag, " ", value, ": ", why);
  };
  if (config.quantization != "none" && config.quantization != "int8") {
    return refuse("quantization", config.quantization,
                  "a Vulkan device multiplies with float32, float16, bfloat16 and int8, and what is fastest on one was "
                  "never measured: name none or int8");
  }
  if (config.pipeline_parallel_size > 1) {
    return refuse("pipeline-parallel-size", config.pipeline_parallel_size, "ranks are the processor's alone");
  }
  if (config.tensor_parallel_size > 1) {
    return refuse("tensor-parallel-size", config.tensor_parallel_size, "ranks are the processor's alone");
  }
  if (config.encode_slice != "none" && config.encode_slice != "auto") {
    return refuse("encode-slice", config.encode_slice, "slices are counted in tasks of the processor's threads");
  }
  return ok_status();
}

StatusOr<std::shared_ptr<const DeviceKind>> choose_device(const EngineConfig& config) {
  RETURN_IF_ERROR(check_device_flags(config));
  if (!is_vulkan(config)) return std::shared_ptr<const DeviceKind>();
  StatusOr<std::shared_ptr<const DeviceKind>> kind =
      open_vulkan_kind(config.device, {.keeps_recordings = config.recordings,
                                       .matrices = config.device_matrices,
                                       .rounds_inputs = config.device_arithmetic == "float16"});
  if (!kind.ok()) return with_prefix(kind.status(), str_cat("--device ", config.device));
  return kind;
}

}  // namespace transept
