// The memory of one step, or of one long encode: bump allocation from one block, sized at start-up by walking the
// largest step.
//
// A measuring arena returns addresses that must not be touched, and records the bytes of the largest step. A real one
// returns memory. An allocation that does not fit (a step larger than the measured one: a bug, but no reason to lose a
// request) comes from the heap and is counted. Owned by a model runner. Not thread-safe: one thread at a time allocates
// (the engine thread, or that of a sliced encode while the engine thread sleeps); tasks get slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "tensor/device.h"
#include "tensor/page_buffer.h"
#include "tensor/tensor.h"

namespace transept {

class Arena final {
 public:
  static constexpr size_t kAlignment = 64;

  static Arena measuring() { return Arena(); }
  // In the device's memory, which the arena borrows. Throws std::bad_alloc if it refuses.
  explicit Arena(size_t capacity_bytes, DeviceMemory& memory = host_memory());
  ~Arena() { release(0, 0); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  bool is_measuring() const { return capacity_ == 0; }

  // Returns uninitialised memory, aligned to kAlignment, valid until the enclosing Scope ends. 0 bytes take kAlignment.
  // Throws std::bad_alloc if the block is full and the heap (the device's memory) too.
  void* allocate(size_t bytes);

  template <typename T>
  std::span<T> allocate_span(int64_t count) {
    return {static_cast<T*>(allocate(static_cast<size_t>(count) * sizeof(T))), static_cast<size_t>(count)};
  }
  // A dense tensor of this shape in allocate()d memory.
  TensorView tensor(DType dtype, std::initializer_list<int64_t> dims);

  size_t capacity_bytes() const { return capacity_; }
  // The most bytes in use at a time so far, those from the heap included.
  size_t high_water_bytes() const { return high_water_; }
  // Allocations that came from the heap.
  int64_t num_overflows() const { return num_overflows_; }

  // Frees at its end all that was allocated since its start. Scopes nest. Borrows the arena.
  class Scope final {
   public:
    explicit Scope(Arena& arena) : arena_(arena), used_(arena.used_), num_spilled_(arena.spilled_.size()) {}
    ~Scope() { arena_.release(used_, num_spilled_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    size_t used_;
    size_t num_spilled_;
  };

 private:
  Arena() = default;
  void* spill(size_t size);
  void release(size_t used, size_t num_spilled);

  DeviceMemory* memory_ = nullptr;  // null: measuring
  DeviceBuffer block_;
  size_t capacity_ = 0;  // 0: measuring
  size_t used_ = 0;
  size_t high_water_ = 0;
  int64_t num_overflows_ = 0;
  std::vector<std::shared_ptr<const void>> spilled_;  // from the heap, in order of allocation
};

}  // namespace transept
