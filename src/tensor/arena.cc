#include "tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace transept {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// Where a measuring arena starts: not null, and no memory is ever mapped there.
constexpr uintptr_t kNowhere = Arena::kAlignment;

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Arena::Arena(size_t capacity_bytes)
    : pages_(rounded(std::max<size_t>(capacity_bytes, 1), kAlignment)), capacity_(pages_.size()) {}

void* Arena::allocate(size_t bytes) {
  const size_t size = rounded(std::max<size_t>(bytes, 1), kAlignment);
  const size_t begin = used_;
  used_ += size;
  high_water_ = std::max(high_water_, used_);
  if (is_measuring()) return reinterpret_cast<void*>(kNowhere + begin);
  if (used_ <= capacity_) return pages_.data() + begin;
  ++num_overflows_;
  void* memory = std::aligned_alloc(kAlignment, size);
  if (memory == nullptr) throw std::bad_alloc();
  spilled_.push_back(memory);
  return memory;
}

TensorView Arena::tensor(DType dtype, std::initializer_list<int64_t> dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return TensorView(allocate(static_cast<size_t>(count) * dtype_bytes(dtype)), dtype, dims);
}

void Arena::release(size_t used, size_t num_spilled) {
  used_ = used;
  while (spilled_.size() > num_spilled) {
    std::free(spilled_.back());
    spilled_.pop_back();
  }
}

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

std::span<std::byte> PagePool::allocate(size_t bytes) {
  const size_t size = rounded(bytes, Arena::kAlignment);
  if (chunks_.empty() || chunks_.back().size() - used_ < size) {
    chunks_.emplace_back(std::max(size, chunk_bytes_));
    used_ = 0;
  }
  std::byte* data = chunks_.back().data() + used_;
  used_ += size;
  return {data, bytes};
}

}  // namespace transept
