#include "tensor/arena.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace transept {
namespace {

// Where a measuring arena starts: not null, and no memory is ever mapped there.
constexpr uintptr_t kNowhere = Arena::kAlignment;

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Arena::Arena(size_t capacity_bytes, DeviceMemory& memory)
    : memory_(&memory),
      block_(memory.allocate(rounded(std::max<size_t>(capacity_bytes, 1), kAlignment), MemoryUse::kSteps)),
      capacity_(block_.size()) {
  if (block_.data() == nullptr) throw std::bad_alloc();
}

void* Arena::allocate(size_t bytes) {
  const size_t size = rounded(std::max<size_t>(bytes, 1), kAlignment);
  const size_t begin = used_;
  used_ += size;
  high_water_ = std::max(high_water_, used_);
  if (is_measuring()) return reinterpret_cast<void*>(kNowhere + begin);
  if (used_ <= capacity_) return block_.data() + begin;
  ++num_overflows_;
  return spill(size);
}

void* Arena::spill(size_t size) {
  if (memory_->is_host()) {
    void* memory = std::aligned_alloc(kAlignment, size);
    if (memory == nullptr) throw std::bad_alloc();
    spilled_.emplace_back(memory, std::free);
    return memory;
  }
  const DeviceBuffer buffer = memory_->allocate(size, MemoryUse::kSteps);
  if (buffer.data() == nullptr) throw std::bad_alloc();
  spilled_.push_back(buffer.keeper());
  return buffer.data();
}

TensorView Arena::tensor(DType dtype, std::initializer_list<int64_t> dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return TensorView(allocate(static_cast<size_t>(count) * dtype_bytes(dtype)), dtype, dims);
}

void Arena::release(size_t used, size_t num_spilled) {
  used_ = used;
  while (spilled_.size() > num_spilled) spilled_.pop_back();
}

}  // namespace transept
