// Large long-lived memory of the host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace transept {

inline constexpr size_t kPageAlignment = 64;

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

// Has the system put memory behind these bytes now, as their first write otherwise would: 0.1 ms for 2 MiB, and up to 5
// ms where the machine is virtual and its host has to find them first. Bytes that were written stay. A hint: without
// effect before Linux 5.14. Thread-safe, also beside threads that write there.
void populate_pages(std::span<std::byte> bytes);

// Memory for many buffers of about the same lifetime (a model's weights), adjacent in large pages: a PageBuffer each
// would leave most of its last large page unused. Shared by the owners of its buffers. Not thread-safe.
class PagePool final {
 public:
  // Takes memory from the system in chunks of this many bytes of address space (a page counts when it is first
  // written), or more for a larger buffer.
  explicit PagePool(size_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  // Returns zeroed memory, aligned to kPageAlignment, valid as long as the pool. Throws std::bad_alloc if the system
  // refuses.
  std::span<std::byte> allocate(size_t bytes);

 private:
  size_t chunk_bytes_;
  std::vector<PageBuffer> chunks_;
  size_t used_ = 0;  // of the last chunk
};

}  // namespace transept
