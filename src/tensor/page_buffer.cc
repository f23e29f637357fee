#include "tensor/page_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

namespace transept {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

PageBuffer PageBuffer::try_allocate(size_t bytes) {
  PageBuffer buffer;
  if (bytes == 0) return buffer;
  const size_t size = rounded(bytes, kHugePage);
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return buffer;
  ::madvise(data, size, MADV_HUGEPAGE);
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.size_ = bytes;
  return buffer;
}

PageBuffer::PageBuffer(size_t bytes) : PageBuffer(try_allocate(bytes)) {
  if (bytes > 0 && data_ == nullptr) throw std::bad_alloc();
}

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) ::munmap(data_, rounded(size_, kHugePage));
}

PageBuffer::PageBuffer(PageBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

PageBuffer& PageBuffer::operator=(PageBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void populate_pages(std::span<std::byte> bytes) {
  static const auto kPage = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data()) / kPage * kPage;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
}

std::span<std::byte> PagePool::allocate(size_t bytes) {
  const size_t size = rounded(bytes, kPageAlignment);
  if (chunks_.empty() || chunks_.back().size() - used_ < size) {
    chunks_.emplace_back(std::max(size, chunk_bytes_));
    used_ = 0;
  }
  std::byte* data = chunks_.back().data() + used_;
  used_ += size;
  return {data, bytes};
}

}  // namespace transept
