// Addresses and an order on a Vulkan device: memory that is named by addresses, and ops and copies that run as if one
// by one. Ops are recorded, and run together when the host asks for bytes, or when many are there. Used by one thread
// at a time; for several: vulkan_space.h.
//
// Addresses are of pages that the process has reserved and may not touch: host code that reads one stops by a signal,
// and no two memories have the same.
//
// Steps: between begin_step() and end_step() recordings are kept, and what has the same ops as a kept one is submitted
// without being recorded again (recording/kept_recordings.h). So that steps of other lengths are the same, their lists
// are staged from the beginning of memory of their own, and block tables in a range that is one whatever they are.
//
// After a failure (status()) nothing runs any more: copies to the host give zeros.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device_vulkan/fuse_ops.h"
#include "device_vulkan/vulkan_device.h"
#include "device_vulkan/vulkan_memory.h"
#include "device_vulkan/vulkan_stream.h"
#include "recording/kept_recordings.h"
#include "recording/recording.h"
#include "tensor/device.h"

namespace transept {

class VulkanTimeline final {
 public:
  struct Options {
    // How long the device may take for what was recorded before it counts as hanging.
    std::chrono::seconds longest_run{300};
    size_t most_ops = 512;         // are recorded before they run
    bool keeps_recordings = true;  // of steps; else begin_step() changes nothing
    bool fuses = true;             // ops that are neighbours (fuse_ops.h)
    size_t most_kept = 128;        // recordings: of all buckets of rows, and some parts of each
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
  // All memory of the device counts as own_bytes here: who allocates knows what for.
  DeviceUsage usage() const;
  uint64_t max_range_bytes() const { return memory_->max_bytes(); }

  // Errors: as Buffers::allocate(); kResourceExhausted, the process has no addresses left.
  StatusOr<std::byte*> allocate(uint64_t bytes);
  // What was recorded with it runs first. After a failure it is kept. REQUIRES: the address of an allocate().
  void free(std::byte* address);

  // Where these bytes lie. REQUIRES: they are within one allocate(), at whole words; else a CHECK says so.
  BufferRange range(const void* address, uint64_t bytes) const;

  // Numbers of whole words: begin and size. The ranges do not overlap.
  void copy_in(void* to, const void* from_host, uint64_t bytes);
  // Moves up to `most` bytes on the way, and of equal `most` as many in steps of any `bytes`, up to where these end.
  void copy_out(void* to_host, const void* from, uint64_t bytes, uint64_t most);
  void copy_out(void* to_host, const void* from, uint64_t bytes) { copy_out(to_host, from, bytes, bytes); }
  void copy(void* to, const void* from, uint64_t bytes);
  void fill(void* to, uint8_t value, uint64_t bytes);

  // For ops: where one is recorded. Call it before each, not once: it runs what was recorded if that is much.
  Recorder& recorder();
  // Lists of the host where an op can read them, each padded to whole words; an empty one takes a word. Valid for ops
  // that are recorded before the next call of stage(), copy_in() or recorder(): stage after recorder().
  std::vector<BufferRange> stage(std::initializer_list<std::span<const std::byte>> lists);

  // A list that many ops of a step have, as all layers do: it is there once, and not staged again. Outside of steps as
  // stage(). Call it behind stage() for the same op.
  BufferRange stage_once(std::span<const std::byte> list);

  // Room for a list that the caller writes through `host`, as stage() has it. Null: after a failure.
  struct StagedRoom {
    BufferRange range;
    std::byte* host = nullptr;
  };
  StagedRoom stage_room(uint64_t bytes);
  // Block tables of a step, in the range that all of its steps have: `first` counts words from its beginning. Valid
  // until the step ends; call it before recorder(). REQUIRES: is_in_step(); whole words.
  struct StagedTable {
    BufferRange range;
    uint32_t first = 0;
  };
  StagedTable stage_table(std::span<const std::byte> table);

  // Room for rows that are rounded and read by the next product alone: one of two in turn, so that rows are rounded
  // while those before them are still read. Of a step's ops each has the same one in every step. None: it is too small
  // for so many bytes, or ops are not fused.
  struct RoundingRoom {
    BufferRange q, codes;
  };
  std::optional<RoundingRoom> next_rounding_room(uint64_t q_bytes, uint64_t codes_bytes);

  // Submits what was recorded before, and waits until the last step has run: its lists are written over from here on.
  // REQUIRES: no step is open.
  void begin_step();
  // What is left of the step is submitted. Returns what the step took; of the host the calling thread's processor time:
  // a device that computes on the processor takes it away at times. REQUIRES: as begin_step(), one.
  StepCounts end_step();
  bool keeps_recordings() const { return options_.keeps_recordings; }
  bool is_in_step() const { return in_step_; }
  size_t num_kept() const { return kept_.size(); }

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

  // What the host writes and ops read, from its beginning on.
  struct UploadArea {
    BufferId buffer = BufferId::kNone;
    uint64_t size = 0, used = 0;
  };

  VulkanTimeline(std::shared_ptr<VulkanDevice> device, Options options)
      : device_(std::move(device)),
        options_(options),
        recorder_(device_->info().range_alignment),
        kept_(options.most_kept) {}
  Status open();
  Status open_fusion();
  Status open_area(uint64_t bytes, UploadArea& area);
  void enlarge(uint64_t bytes, UploadArea& area);
  // What is recorded, as the device gets it.
  Recording to_submit() const;
  StatusOr<Ticket> submit(PreparedRecording& prepared);
  Status submit_once();
  Status submit_kept();
  void submit();
  Status wait(Ticket ticket);
  void wait_for_all();
  void fail(const Status& status);
  BufferRange take_room(uint64_t bytes);
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
  UploadArea upload_, step_upload_, tables_;
  BufferId readback_ = BufferId::kNone;
  FusionRoom fusion_;
  std::array<BufferId, 2> rounding_rooms_{};  // none until rows are rounded
  size_t next_rounding_ = 0;
  std::vector<std::unique_ptr<PreparedRecording>> once_;  // submitted, not waited for
  KeptRecordings kept_;
  Ticket last_ = Ticket::kNone, last_of_step_ = Ticket::kNone;
  bool in_step_ = false;
  StepCounts counts_;                     // of the open step
  DeviceUsage usage_;                     // its numbers of what was done
  std::optional<TimePoint> busy_since_;   // what was submitted first of what the host has not seen the end of
  std::optional<double> host_at_;         // the host works for the open step since then
  std::vector<std::byte> staged_tables_;  // what tables_ has
  struct Table {
    uint64_t begin = 0, size = 0;
  };
  std::vector<Table> tables_of_step_;
  struct StagedList {
    std::vector<std::byte> bytes;
    BufferRange range;
  };
  std::vector<StagedList> staged_once_;  // of the open step, those that are still there
  Status failure_;
};

}  // namespace transept
