#include "rank/devices.h"

#include "attention/backends.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

class CpuKind final : public DeviceKind {
 public:
  DeviceMemory& memory() const override { return host_memory(); }
  std::unique_ptr<Device> make_device(ThreadPool& threads, Isa isa) const override {
    return std::make_unique<CpuDevice>(threads, isa);
  }
  StatusOr<std::shared_ptr<const AttentionBackend>> make_attention(const std::string& name) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<AttentionBackend> backend, make_attention_backend(name));
    return std::shared_ptr<const AttentionBackend>(std::move(backend));
  }
  std::unique_ptr<const Selector> make_selector(ThreadPool& /*threads*/, Isa /*isa*/) const override {
    return make_cpu_selector();
  }
};

}  // namespace

const DeviceKind& cpu_device_kind() {
  static const CpuKind kind;
  return kind;
}

}  // namespace transept
