// The memory of a Vulkan device as models see it (tensor/device.h), shared by the ranks that run on it: their ops and
// copies go through one timeline, in the order in which they are called. While one thread has a step open
// (begin_step()), others wait with what they call. Thread-safe.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "base/mutex.h"
#include "device_vulkan/matrix_trial.h"
#include "device_vulkan/vulkan_timeline.h"
#include "tensor/device.h"

namespace transept {

class VulkanSpace final : public DeviceMemory, public std::enable_shared_from_this<VulkanSpace> {
 public:
  static std::shared_ptr<VulkanSpace> create(std::unique_ptr<VulkanTimeline> timeline, MatrixOptions matrices = {}) {
    return std::shared_ptr<VulkanSpace>(new VulkanSpace(std::move(timeline), std::move(matrices)));
  }

  bool is_host() const override { return false; }
  // What is allocated keeps the space. The reason of a refusal is logged.
  DeviceBuffer allocate(size_t bytes, MemoryUse use) override;
  void copy_in(void* to, const void* from_host, size_t bytes) override;
  void copy_out(void* to_host, const void* from, size_t bytes) override { copy_out_some(to_host, from, bytes, bytes); }
  void copy_out_some(void* to_host, const void* from, size_t bytes, size_t most) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void fill(void* to, uint8_t value, size_t bytes) override;
  uint64_t free_bytes() const override;
  uint64_t max_operand_bytes() const override { return max_range_bytes_; }

  // Calls `record` with the timeline, which no other thread has meanwhile.
  void with_timeline(FunctionRef<void(VulkanTimeline&)> record);

  // VulkanTimeline's, of the calling thread.
  void begin_step();
  StepCounts end_step();
  bool keeps_recordings() const { return keeps_recordings_; }

  // How such products are made, which is tried when it is asked for first: the models of replicas have the same ones,
  // and so the same forms. Errors: those of try_matrices().
  struct TriedMatrices {
    MatrixForms forms;
    std::vector<std::string> report;
  };
  StatusOr<TriedMatrices> tried_matrices(const ModelProducts& products);

  Status status() const;
  DeviceUsage usage() const;
  const VulkanDeviceInfo& info() const { return info_; }

 private:
  VulkanSpace(std::unique_ptr<VulkanTimeline> timeline, MatrixOptions matrices)
      : matrices_(std::move(matrices)),
        info_(timeline->info()),
        max_range_bytes_(timeline->max_range_bytes()),
        keeps_recordings_(timeline->keeps_recordings()),
        timeline_(std::move(timeline)) {}
  void wait_for_turn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const MatrixOptions matrices_;
  const VulkanDeviceInfo info_;
  const uint64_t max_range_bytes_;
  const bool keeps_recordings_;
  mutable Mutex mutex_;
  CondVar step_ended_;
  std::array<uint64_t, kNumMemoryUses> bytes_ ABSL_GUARDED_BY(mutex_) = {};  // that are allocated
  std::thread::id in_step_ ABSL_GUARDED_BY(mutex_);  // the thread that has a step open; none: no thread
  std::map<ModelProducts, TriedMatrices> tried_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<VulkanTimeline> timeline_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace transept
