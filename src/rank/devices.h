// The kinds of devices that a rank can run on. A kind makes what a rank needs of it. Immutable: thread-safe.
#pragma once

#include <memory>
#include <string>

#include "attention/backend.h"
#include "base/isa.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "sampling/selector.h"
#include "tensor/device.h"

namespace transept {

class DeviceKind {
 public:
  virtual ~DeviceKind() = default;

  // The memory of weights, KV and steps; it outlives all ranks.
  virtual DeviceMemory& memory() const = 0;
  // A rank's own. Borrows the threads; `isa` is the processor's, for what stays there.
  virtual std::unique_ptr<Device> make_device(ThreadPool& threads, Isa isa) const = 0;
  // Shared by the replicas. Errors: an unknown name (lists those that the device has).
  virtual StatusOr<std::shared_ptr<const AttentionBackend>> make_attention(const std::string& name) const = 0;
  // A rank's own. Borrows the threads, for what stays on the processor.
  virtual std::unique_ptr<const Selector> make_selector(ThreadPool& threads, Isa isa) const = 0;
  // Whether it multiplies with weights that are kept so.
  virtual bool multiplies(const PackedFormat& /*format*/) const { return true; }
  virtual DeviceNames names() const { return {}; }
};

const DeviceKind& cpu_device_kind();

}  // namespace transept
