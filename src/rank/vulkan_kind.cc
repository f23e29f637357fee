#include "rank/vulkan_kind.h"

#include "rank/read_back_selector.h"

namespace transept {
namespace {

class VulkanKind final : public DeviceKind {
 public:
  explicit VulkanKind(std::shared_ptr<const VulkanHandle> device) : device_(std::move(device)) {}

  DeviceMemory& memory() const override { return device_->memory(); }
  std::unique_ptr<Device> make_device(ThreadPool& threads, Isa isa) const override {
    return device_->make_device(threads, isa);
  }
  StatusOr<std::shared_ptr<const AttentionBackend>> make_attention(const std::string& name) const override {
    if (name != "auto" && name != "vulkan") {
      return invalid_argument("--attention-backend ", name, ": a Vulkan device has its own alone; give auto or vulkan");
    }
    return std::shared_ptr<const AttentionBackend>(device_->make_attention());
  }
  std::unique_ptr<const Selector> make_selector(ThreadPool& threads, Isa isa) const override {
    return make_read_back_selector(threads, isa);
  }
  bool multiplies(const PackedFormat& format) const override {
    const WeightFormat& weights = format.weights;
    return weights == kFloat32Format || weights == kFloat16Format || weights == kBFloat16Format ||
           weights == kInt8Format;
  }
  DeviceNames names() const override { return device_->names(); }

 private:
  std::shared_ptr<const VulkanHandle> device_;
};

}  // namespace

StatusOr<std::shared_ptr<const DeviceKind>> open_vulkan_kind(const std::string& name, VulkanOpening opening) {
  ASSIGN_OR_RETURN(std::shared_ptr<const VulkanHandle> device, open_vulkan_device(name, std::move(opening)));
  return std::shared_ptr<const DeviceKind>(std::make_shared<VulkanKind>(std::move(device)));
}

}  // namespace transept
