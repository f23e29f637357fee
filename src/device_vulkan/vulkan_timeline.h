// Addresses and an order on a Vulkan device: memory that is named by addresses, and ops and copies that run as if one
// by one. Ops are recorded, and run together when the host asks for bytes, or when many are there. Used by one thread
// at a time; for several: vulkan_space.h.
//
// Addresses are of pages that the process has reserved and may not touch: host code that reads one stops by a signal,
// and no two memories have the same.
//
// After a failure (status()) nothing runs any more: copies to the host give zeros.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "device_vulkan/vulkan_device.h"
#include "device_vulkan/vulkan_memory.h"
#include "device_vulkan/vulkan_stream.h"
#include "recording/recording.h"

namespace transept {

class VulkanTimeline final {
 public:
  struct Options {
    // How long the device may take for what was recorded before it counts as hanging.
    std::chrono::seconds longest_run{300};
    size_t most_ops = 512;  // are recorded before they run
    VulkanMemory::Options memory = {};
  };

  // Errors: those of VulkanMemory, VulkanStream and Buffers::allocate().
  static StatusOr<std::unique_ptr<VulkanTimeline>> create(std::shared_ptr<VulkanDevice> device, Options options);
  static StatusOr<std::unique_ptr<VulkanTimeline>> create(std::shared_ptr<VulkanDevice> device) {
    return create(std::move(device), Options());
  }
  ~VulkanTimeline();
  VulkanTimeline(const VulkanTimeline&) = delete;
  VulkanTimeline& operator=(const VulkanTimeline&) = delete;

  const VulkanDeviceInfo& info() const { return device_->info(); }
  const Status& status() const { return failure_; }
  uint64_t free_bytes() const {
    return memory_->limit_bytes() - std::min(memory_->limit_bytes(), memory_->used_bytes());
  }
  uint64_t max_range_bytes() const { return memory_->max_bytes(); }

  // Errors: as Buffers::allocate(); kResourceExhausted, the process has no addresses left.
  StatusOr<std::byte*> allocate(uint64_t bytes);
  // What was recorded with it runs first. After a failure it is kept. REQUIRES: the address of an allocate().
  void free(std::byte* address);

  // Where these bytes lie. REQUIRES: they are within one allocate(), at whole words; else a CHECK says so.
  BufferRange range(const void* address, uint64_t bytes) const;

  // Numbers of whole words: begin and size. The ranges do not overlap.
  void copy_in(void* to, const void* from_host, uint64_t bytes);
  void copy_out(void* to_host, const void* from, uint64_t bytes);
  void copy(void* to, const void* from, uint64_t bytes);
  void fill(void* to, uint8_t value, uint64_t bytes);

  // For ops: where one is recorded. Call it before each, not once: it runs what was recorded if that is much.
  Recorder& recorder();
  // Lists of the host where an op can read them, each padded to whole words; an empty one takes a word. Valid for ops
  // that are recorded before the next call of stage(), copy_in() or recorder(): stage after recorder().
  std::vector<BufferRange> stage(std::initializer_list<std::span<const std::byte>> lists);

  // Runs what was recorded, and waits for it.
  void flush();

 private:
  // A buffer and the addresses that stand for it. Small memories share one: drivers allow few allocations.
  struct Chunk {
    BufferId buffer = BufferId::kNone;
    std::byte* address = nullptr;
    uint64_t size = 0, used = 0;
    int64_t num_memories = 0;
  };
  struct Memory {
    Chunk* chunk = nullptr;
    uint64_t begin = 0, size = 0;  // in the chunk's buffer
  };

  VulkanTimeline(std::shared_ptr<VulkanDevice> device, Options options)
      : device_(std::move(device)), options_(options), recorder_(device_->info().range_alignment) {}
  Status open();
  Status run();
  void fail(const Status& status);
  BufferRange stage_room(uint64_t bytes);
  StatusOr<Chunk*> make_chunk(uint64_t size);
  void release(Chunk* chunk);

  std::shared_ptr<VulkanDevice> device_;
  Options options_;
  std::unique_ptr<VulkanMemory> memory_;
  std::unique_ptr<VulkanStream> stream_;
  Recorder recorder_;
  std::map<const std::byte*, Memory> memories_;  // by their first address
  std::map<const std::byte*, std::unique_ptr<Chunk>> chunks_;
  Chunk* shared_ = nullptr;  // where the next small memory lies; null: nowhere yet
  BufferId upload_ = BufferId::kNone, readback_ = BufferId::kNone;
  uint64_t upload_size_ = 0, upload_used_ = 0;
  Status failure_;
};

}  // namespace transept
