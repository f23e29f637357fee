// Replaces operator new by one that counts. Alone in its file, so that no caller sees through it to malloc.
#include "base/allocation_count_testing.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> g_num_allocations{0};
}  // namespace

void* operator new(size_t size) {
  ++g_num_allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// A sanitizer's own would not come back to ours.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++g_num_allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace transept::testing {

int64_t num_allocations() { return g_num_allocations; }

}  // namespace transept::testing
