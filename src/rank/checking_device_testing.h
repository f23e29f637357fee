// For tests: a device that computes as the processor does, in memory that the host cannot touch. It proves the device
// seam (tensor/device.h): host code that touches a device's address stops by a signal, and an op that is
// given an address that is not the device's stops by a CHECK. New memory is full of NaN. Results are the processor's to
// the bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "rank/devices.h"

namespace transept::testing {

class CheckingDeviceKind final : public DeviceKind {
 public:
  CheckingDeviceKind();
  ~CheckingDeviceKind() override;

  DeviceMemory& memory() const override;
  std::unique_ptr<Device> make_device(ThreadPool& threads, Isa isa) const override;
  StatusOr<std::shared_ptr<const AttentionBackend>> make_attention(const std::string& name) const override;
  std::unique_ptr<const Selector> make_selector(ThreadPool& threads, Isa isa) const override;

  struct Counts {
    std::atomic<int64_t> num_ops{0}, num_attentions{0}, num_selections{0};
    std::atomic<int64_t> bytes_in{0}, bytes_out{0}, bytes_within{0};
  };
  const Counts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace transept::testing
