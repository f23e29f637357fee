// The device seam: where tensors lie, and who computes. Everything above floor F3 asks a Device; nothing there knows
// whose memory a TensorView is in.
//
// The line: memory that a view points to is the device's. Host code neither reads nor writes it, but through
// DeviceMemory's copies. Lists (View<int32_t>, std::span) and features are the host's: an op that takes one has copied
// what it needs when it returns. Step memory (tensor/arena.h), KV (kv_storage), weights (weights/weight_map.h's
// memory()) and rows of items come from the device's memory.
//
// A device brings a Device, an AttentionBackend (attention/backend.h) and a Selector (sampling/selector.h), and one
// line of rank/devices.cc (docs/extending.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

struct OpTable;  // ops/op_table.h

// Memory of a device. Owns it; moves only. Thread-safe as any value.
class DeviceBuffer final {
 public:
  DeviceBuffer() = default;
  // `keeper` frees the memory when the last owner goes.
  DeviceBuffer(std::byte* data, size_t size, std::shared_ptr<const void> keeper)
      : data_(data), size_(size), keeper_(std::move(keeper)) {}
  DeviceBuffer(DeviceBuffer&&) = default;
  DeviceBuffer& operator=(DeviceBuffer&&) = default;

  std::byte* data() const { return data_; }  // an address of the device; null: nothing
  size_t size() const { return size_; }
  // For owners of a part of the memory.
  const std::shared_ptr<const void>& keeper() const { return keeper_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const void> keeper_;
};

// What memory of a device is for.
enum class MemoryUse : uint8_t { kWeights, kKv, kSteps };
constexpr size_t kNumMemoryUses = 3;

// Allocation and copies, in the order in which they and the device's ops are called. Thread-safe. Outlives all that was
// allocated from it. Addresses count in bytes: address + n is n bytes further.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Whether addresses are the host's too: host code may then read what is read-only (weights), and copies may be left
  // out.
  virtual bool is_host() const = 0;
  // Returns memory whose content is undefined, aligned to 64 bytes. Null data: refused, or `bytes` is 0. `use` is for
  // counts alone.
  virtual DeviceBuffer allocate(size_t bytes, MemoryUse use) = 0;
  virtual void copy_in(void* to, const void* from_host, size_t bytes) = 0;
  virtual void copy_out(void* to_host, const void* from, size_t bytes) = 0;
  // The same; a device may move up to `most` bytes on the way, so that copies of other `bytes` are one to it. REQUIRES:
  // bytes <= most, which are the device's at `from`.
  virtual void copy_out_some(void* to_host, const void* from, size_t bytes, size_t /*most*/) {
    copy_out(to_host, from, bytes);
  }
  virtual void copy(void* to, const void* from, size_t bytes) = 0;  // the ranges do not overlap
  virtual void fill(void* to, uint8_t value, size_t bytes) = 0;

  // Bytes that may be allocated now.
  virtual uint64_t free_bytes() const = 0;
  // The most bytes that one operand of an op may span; a layer's KV is one.
  virtual uint64_t max_operand_bytes() const { return std::numeric_limits<uint64_t>::max(); }
};

// The memory of the processor: zeroed pages. One object, which lives as long as the process.
DeviceMemory& host_memory();

// What a device has done in steps, and kept of them (Device::begin_step()).
struct StepCounts {
  int64_t num_recorded = 0;     // submissions that were recorded
  int64_t num_replayed = 0;     // those that were not, as an earlier one was the same
  double host_seconds = 0;      // of the host until the device had both, without waiting for the device
  int64_t num_dispatches = 0;   // kernels of both
  int64_t uploaded_bytes = 0;   // that the host has written for both: lists, tables, rows that it makes
  int64_t read_back_bytes = 0;  // that the host has asked for

  StepCounts& operator+=(const StepCounts& more) {
    num_recorded += more.num_recorded;
    num_replayed += more.num_replayed;
    host_seconds += more.host_seconds;
    num_dispatches += more.num_dispatches;
    uploaded_bytes += more.uploaded_bytes;
    read_back_bytes += more.read_back_bytes;
    return *this;
  }
};

// What a device is called, for reports. A value.
struct DeviceNames {
  std::string name, driver;  // "": the processor

  std::string text() const { return name.empty() ? "" : name + " by " + driver; }
};

// What a device has in memory, and has done since it was opened: for all ranks that share it.
struct DeviceUsage {
  std::array<uint64_t, kNumMemoryUses> memory_bytes = {};  // by MemoryUse, as they were asked for
  uint64_t own_bytes = 0;       // of its memory besides: of its kernels, and rest of buffers that are divided
  uint64_t transfer_bytes = 0;  // of the host's that it reads and writes: what goes there and comes back
  double busy_seconds = 0;      // from a submission until the host has seen the end of all that was submitted
  int64_t num_submits = 0;
  int64_t read_back_bytes = 0;
};

// What computes. Used by one thread at a time, as the arena of its Context is; owned by a rank.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;
  virtual DeviceMemory& memory() const = 0;
  virtual const OpTable& ops() const = 0;
  // Why the results of the device's ops and copies are not to be used: an op that a dry run has met is not there, or a
  // call of its driver failed. The processor never fails.
  virtual Status status() const { return ok_status(); }

  // After a dry run of the largest steps: the device chooses how it computes what that has met, for good, and appends
  // what it has chosen to the start's report. Errors: what it was told to choose is not to be had; calls of its driver
  // failed.
  virtual Status choose_forms(std::vector<std::string>& /*report*/) { return ok_status(); }

  // A step that may come again begins: a device may keep what it makes of the ops and copies until end_step(), and run
  // it again in a step that has the same ones, of other lengths, tables, ids and content. What those before it recorded
  // need not have ended. Not nested.
  virtual void begin_step() {}
  virtual void end_step() {}
  // Whether steps are to be filled with rows that nothing reads, up to a few numbers of rows (rank/row_buckets.h), so
  // that they come again.
  virtual bool keeps_steps() const { return false; }
  virtual StepCounts step_counts() const { return {}; }                      // of all steps so far
  virtual std::optional<DeviceUsage> usage() const { return std::nullopt; }  // of the processor none
};

// Calls begin_step() and end_step() of a device, or of none. Borrows it.
class DeviceStep final {
 public:
  explicit DeviceStep(Device* device) : device_(device) {
    if (device_ != nullptr) device_->begin_step();
  }
  ~DeviceStep() {
    if (device_ != nullptr) device_->end_step();
  }
  DeviceStep(const DeviceStep&) = delete;
  DeviceStep& operator=(const DeviceStep&) = delete;

 private:
  Device* device_;
};

}  // namespace transept
