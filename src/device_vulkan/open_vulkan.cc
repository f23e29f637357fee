#include "device_vulkan/open_vulkan.h"

#ifdef TRANSEPT_VULKAN
#include "device_vulkan/instance.h"
#include "device_vulkan/pick_device.h"
#include "device_vulkan/vulkan_attention.h"
#include "device_vulkan/vulkan_library.h"
#include "device_vulkan/vulkan_model_device.h"
#include "device_vulkan/vulkan_ops.h"
#endif

namespace transept {

#ifdef TRANSEPT_VULKAN
namespace {

class OpenDevice final : public VulkanHandle {
 public:
  explicit OpenDevice(std::shared_ptr<VulkanSpace> space) : space_(std::move(space)) {}

  DeviceMemory& memory() const override { return *space_; }
  std::unique_ptr<Device> make_device(ThreadPool& threads, Isa isa) const override {
    return std::make_unique<VulkanModelDevice>(space_, vulkan_op_table(), threads, isa);
  }
  std::unique_ptr<AttentionBackend> make_attention() const override { return std::make_unique<VulkanAttention>(); }
  DeviceNames names() const override {
    const VulkanDeviceInfo& info = space_->info();
    return {info.name, str_cat(info.driver, ", ", info.driver_version)};
  }

 private:
  std::shared_ptr<VulkanSpace> space_;
};

}  // namespace

namespace {

StatusOr<MatrixOptions> matrix_options(const VulkanDeviceInfo& info, const VulkanOpening& opening) {
  MatrixOptions options{.rounds_inputs = opening.rounds_inputs};
  if (opening.matrices == "on") options.choice = MatrixChoice::kOn;
  if (opening.matrices == "off") options.choice = MatrixChoice::kOff;
  const auto lacks = [&](std::string_view flag) {
    return absl::FailedPreconditionError(str_cat(
        flag, ": ", info.name, ": ", info.no_matrices.empty() ? "it has matrices of int8 alone" : info.no_matrices));
  };
  if (options.choice == MatrixChoice::kOn && !info.no_matrices.empty()) return lacks("--device-matrices on");
  if (opening.rounds_inputs && !info.half_tile.has_value()) return lacks("--device-arithmetic float16");
  return options;
}

}  // namespace

StatusOr<std::shared_ptr<const VulkanHandle>> open_vulkan_device(std::string_view name, VulkanOpening opening) {
  ASSIGN_OR_RETURN(const PFN_vkGetInstanceProcAddr entry, load_vulkan());
  ASSIGN_OR_RETURN(const std::shared_ptr<VulkanInstance> instance,
                   VulkanInstance::create(entry, {std::move(opening.on_problem)}));
  ASSIGN_OR_RETURN(const std::vector<VulkanDeviceInfo> devices, instance->devices());
  ASSIGN_OR_RETURN(const size_t index, pick_vulkan_device(devices, name));
  ASSIGN_OR_RETURN(MatrixOptions matrices, matrix_options(devices[index], opening));
  ASSIGN_OR_RETURN(
      std::shared_ptr<VulkanDevice> device,
      VulkanDevice::create(instance, devices[index], {.has_matrices = matrices.choice != MatrixChoice::kOff}));
  ASSIGN_OR_RETURN(std::unique_ptr<VulkanTimeline> timeline,
                   VulkanTimeline::create(std::move(device), {.keeps_recordings = opening.keeps_recordings}));
  return std::shared_ptr<const VulkanHandle>(
      std::make_shared<OpenDevice>(VulkanSpace::create(std::move(timeline), std::move(matrices))));
}
#else
StatusOr<std::shared_ptr<const VulkanHandle>> open_vulkan_device(std::string_view /*name*/, VulkanOpening /*opening*/) {
  return unimplemented("this build has no Vulkan device (libvulkan-dev, glslang-tools)");
}
#endif

}  // namespace transept
