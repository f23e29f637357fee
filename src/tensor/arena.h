// Memory of one step: bump allocation from one block, sized at start-up by walking the largest step.
//
// A measuring arena hands out addresses that must not be touched and records how much the largest step wants; a real
// one hands out memory. What does not fit (a step larger than the one measured: a bug, but no reason to lose a request)
// comes from the heap and is counted. Not thread-safe: only the engine thread allocates, tasks get slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace transept {

// Zeroed pages for large long-lived buffers (weights, KV pools, the arena), asked to be backed by 2 MiB pages.
class PageBuffer final {
 public:
  PageBuffer() = default;
  explicit PageBuffer(size_t bytes);  // throws std::bad_alloc, as new does, if the system refuses
  ~PageBuffer();
  PageBuffer(PageBuffer&& other) noexcept;
  PageBuffer& operator=(PageBuffer&& other) noexcept;

  // Null data if the system refuses.
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
  explicit Arena(size_t capacity_bytes);
  ~Arena() { release(0, 0); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  bool is_measuring() const { return capacity_ == 0; }

  // Uninitialised, aligned to kAlignment, valid until the enclosing Scope ends.
  void* allocate(size_t bytes);

  template <typename T>
  std::span<T> allocate_span(int64_t count) {
    return {static_cast<T*>(allocate(static_cast<size_t>(count) * sizeof(T))), static_cast<size_t>(count)};
  }
  TensorView tensor(DType dtype, std::initializer_list<int64_t> dims);

  size_t capacity_bytes() const { return capacity_; }
  size_t high_water_bytes() const { return high_water_; }
  int64_t num_overflows() const { return num_overflows_; }

  // Gives back at its end whatever was allocated since its start.
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
  std::vector<void*> spilled_;
};

// Memory for many buffers that live about as long as each other (a model's weights), side by side in large pages: a
// PageBuffer each would leave most of its last large page empty. Not thread-safe; shared by the owners of its pieces.
class PagePool final {
 public:
  // Taken from the system in pieces of so many bytes of address space (a page counts when it is first written), or more
  // where a buffer is larger.
  explicit PagePool(size_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  // Zeroed, aligned to Arena::kAlignment; lives as long as the pool.
  std::span<std::byte> allocate(size_t bytes);

 private:
  size_t chunk_bytes_;
  std::vector<PageBuffer> chunks_;
  size_t used_ = 0;  // of the last chunk
};

}  // namespace transept
