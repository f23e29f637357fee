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

#include "tensor/tensor.h"

namespace transept {

// Zeroed pages for large long-lived buffers (weights, KV pools, the arena). Asks the system for pages of 2 MiB. Owns
// the memory. Moves only; thread-safe as any value.
class PageBuffer final {
 public:
  PageBuffer() = default;
  explicit PageBuffer(size_t bytes);  // throws std::bad_alloc, as new does, if the system refuses
  ~PageBuffer();
  PageBuffer(PageBuffer&& other) noexcept;
  PageBuffer& operator=(PageBuffer&& other) noexcept;

  // Null data if the system refuses, or `bytes` is 0.
  static PageBuffer try_allocate(size_t bytes);

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

class Arena final {
 public:
  static constexpr size_t kAlignment = 64;

  static Arena measuring() { return Arena(); }
  // Throws std::bad_alloc if the system refuses.
  explicit Arena(size_t capacity_bytes);
  ~Arena() { release(0, 0); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  bool is_measuring() const { return capacity_ == 0; }

  // Returns uninitialised memory, aligned to kAlignment, valid until the enclosing Scope ends. 0 bytes take kAlignment.
  // Throws std::bad_alloc if the block is full and the heap too.
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
  void release(size_t used, size_t num_spilled);

  PageBuffer pages_;
  size_t capacity_ = 0;  // 0: measuring
  size_t used_ = 0;
  size_t high_water_ = 0;
  int64_t num_overflows_ = 0;
  std::vector<void*> spilled_;  // from the heap, in order of allocation
};

// Memory for many buffers of about the same lifetime (a model's weights), adjacent in large pages: a PageBuffer each
// would leave most of its last large page unused. Shared by the owners of its buffers. Not thread-safe.
class PagePool final {
 public:
  // Takes memory from the system in chunks of this many bytes of address space (a page counts when it is first
  // written), or more for a larger buffer.
  explicit PagePool(size_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  // Returns zeroed memory, aligned to Arena::kAlignment, valid as long as the pool. Throws std::bad_alloc if the system
  // refuses.
  std::span<std::byte> allocate(size_t bytes);

 private:
  size_t chunk_bytes_;
  std::vector<PageBuffer> chunks_;
  size_t used_ = 0;  // of the last chunk
};

}  // namespace transept
