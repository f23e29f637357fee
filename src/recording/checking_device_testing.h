// For tests: a device in the host's memory that does whatever its contracts allow and a kind device does not. Kernels
// are functions of the host.
//
//   * Ops of a wave run in random order. A recording runs when its ticket is waited for, not before.
//   * An op gets copies of its ranges: what it declares as written only is poison to it, and what it declares as read
//     only is not written back. New memory is poison.
//   * The host may not touch what an open ticket's recording writes, nor write what it reads.
//
// So a declaration that is missing shows as a wrong result (recorder_test.cc). Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "recording/stream.h"

namespace transept::testing {

// What a kernel is here. The operands lie in memory of their own, each of the size of its range.
using HostKernel = std::function<void(std::span<const std::byte> arguments,
                                      std::span<const std::span<std::byte>> operands, const Grid& grid)>;

class CheckingDevice final : public Buffers, public Stream {
 public:
  // A NaN that no arithmetic gives: what is to be kept through an op that writes parts of a range must be another.
  static constexpr uint32_t kPoison = 0xFFBADBADu;

  explicit CheckingDevice(uint32_t seed, uint64_t max_bytes = uint64_t{1} << 20) : rng_(seed), max_bytes_(max_bytes) {}

  // REQUIRES: before prepare() of a recording with the kernel.
  void add_kernel(const KernelSpec& spec, HostKernel kernel) { kernels_[&spec] = std::move(kernel); }

  uint64_t max_bytes() const override { return max_bytes_; }
  StatusOr<BufferId> allocate(uint64_t bytes, MemoryKind kind) override;
  void free(BufferId buffer) override;
  // Errors, besides: kFailedPrecondition, an open ticket's recording has the range.
  Status write(BufferId buffer, uint64_t begin, std::span<const std::byte> from) override;
  Status read(BufferId buffer, uint64_t begin, std::span<std::byte> to) const override;

  StatusOr<std::unique_ptr<PreparedRecording>> prepare(const Recording& recording) override;
  StatusOr<Ticket> submit(PreparedRecording& recording) override;
  Status wait(Ticket ticket, TimePoint deadline) override;

  size_t num_buffers() const { return buffers_.size(); }

 private:
  struct Memory {
    MemoryKind kind = MemoryKind::kDevice;
    std::vector<std::byte> bytes;
  };
  struct Submitted {
    Ticket ticket = Ticket::kNone;
    Recording recording;
  };
  class Prepared;

  StatusOr<std::span<std::byte>> find(const BufferRange& range) const;
  Status check_open(const Access& host) const;
  Grid grid_of(const RecordedOp& op) const;
  void run(const Recording& recording);
  void run_op(const RecordedOp& op);

  std::mt19937 rng_;
  uint64_t max_bytes_;
  uint32_t last_buffer_ = 0;
  std::map<BufferId, Memory> buffers_;
  std::map<const KernelSpec*, HostKernel> kernels_;
  std::vector<Submitted> open_;
  uint64_t last_ticket_ = 0, done_ = 0;
};

}  // namespace transept::testing
