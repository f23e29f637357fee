// A Vulkan device as what models run on (tensor/device.h): one for each rank, over a space that they share. Its ops
// record; nothing is read back but what copy_out() asks for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/isa.h"
#include "base/thread_pool.h"
#include "device_vulkan/vulkan_space.h"
#include "ops/cpu_device.h"

namespace transept {

class VulkanModelDevice final : public Device {
 public:
  // Borrows the threads, for what stays on the processor, and the ops (vulkan_ops.h).
  VulkanModelDevice(std::shared_ptr<VulkanSpace> space, const OpTable& ops, ThreadPool& threads, Isa isa)
      : space_(std::move(space)), ops_(ops), host_(threads, isa) {}

  std::string_view name() const override { return "vulkan"; }
  DeviceMemory& memory() const override { return *space_; }
  const OpTable& ops() const override { return ops_; }
  Status status() const override { return lack_.ok() ? space_->status() : lack_; }

  void begin_step() override { space_->begin_step(); }
  void end_step() override { counts_ += space_->end_step(); }
  bool keeps_steps() const override { return space_->keeps_recordings(); }
  StepCounts step_counts() const override { return counts_; }
  std::optional<DeviceUsage> usage() const override { return space_->usage(); }

  // Tries the forms of the products that a dry run has met, and finds the factors of bfloat16 weights.
  Status choose_forms(std::vector<std::string>& report) override;
  // A dry run has met a product with these weights.
  void note_product(const PackedMatrix& w);
  // How one is made.
  DeviceTiling tiling_of(const PackedMatrix& w) const;

  VulkanSpace& space() const { return *space_; }
  CpuDevice& host() { return host_; }

  // An op that is not there was met: the first is what status() tells.
  void set_lack(std::string_view op) {
    if (!lack_.ok()) return;
    lack_ = unimplemented("the model needs ", op, ", which the Vulkan device does not have: give --device cpu");
  }

 private:
  std::shared_ptr<VulkanSpace> space_;
  const OpTable& ops_;
  CpuDevice host_;
  Status lack_;
  StepCounts counts_;
  ModelProducts products_;
  MatrixForms forms_;
  std::map<const std::byte*, uint64_t> bfloat16_;   // matrices that were met, and their bytes
  std::map<const std::byte*, uint32_t> exponents_;  // of those that matrix units multiply (DeviceTiling)
};

// The device of a context. REQUIRES: it is one.
inline VulkanModelDevice& vulkan_of(Context& context) {
  DCHECK(context.device.name() == "vulkan");
  return static_cast<VulkanModelDevice&>(context.device);
}

}  // namespace transept
