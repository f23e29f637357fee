// The processor as a device: the threads and the instruction level that its ops run with. Borrows the threads.
#pragma once

#include <string_view>

#include "base/check.h"
#include "base/isa.h"
#include "base/thread_pool.h"
#include "ops/op_table.h"
#include "tensor/context.h"
#include "tensor/device.h"

namespace transept {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(ThreadPool& threads, Isa isa = Isa::kGeneric) : threads_(threads), isa_(isa) {}

  std::string_view name() const override { return "cpu"; }
  DeviceMemory& memory() const override { return host_memory(); }
  const OpTable& ops() const override;

  ThreadPool& threads() const { return threads_; }
  Isa isa() const { return isa_; }

 private:
  ThreadPool& threads_;
  Isa isa_;
};

// The processor that a context is of. REQUIRES: its device is a CpuDevice: only the processor's own code asks.
inline const CpuDevice& cpu_of(const Context& context) {
  DCHECK(context.device.name() == "cpu");
  return static_cast<const CpuDevice&>(context.device);
}

}  // namespace transept
