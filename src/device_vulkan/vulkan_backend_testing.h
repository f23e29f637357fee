// For tests: the kernels of attention as a backend of host memory, so that the problems of backends
// (attention/attention_problem_testing.h) run on a software device. Used by one thread.
#pragma once

#include <vector>

#include "attention/backend.h"
#include "device_vulkan/vulkan_rig_testing.h"

namespace transept::testing {

// Takes what a backend is handed to the device and back, so that the problems of backends run here. Each run is a
// recording of its own.
class DeviceBackend final : public AttentionBackend {
 public:
  explicit DeviceBackend(VulkanRig& rig) : rig_(rig) {}

  std::string_view name() const override { return "vulkan"; }
  bool supports(const AttentionCapabilities&, std::string*) const override { return true; }
  // As the cpu backend has it, so that blocks can be compared.
  size_t block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const override;
  void plan(Context&, ForwardBatch&) const override {}
  void run(Context& context, AttentionType type, const AttentionMetadata& metadata,
           const AttentionArgs& args) const override;

 private:
  DeviceMatrix put(const TensorView& view) const;
  void put_bias(const AttentionBias& bias, int64_t seqs, int64_t rows, int64_t keys, DeviceBias& out) const;
  std::vector<AttentionRow> rows_of(AttentionType type, const AttentionMetadata& metadata,
                                    const AttentionArgs& args) const;
  BufferRange record_captured(const AttentionCapture& capture, const DeviceAttention& attention, const DeviceKv& kv,
                              const BufferRange& tables) const;

  VulkanRig& rig_;
};

}  // namespace transept::testing
