// Replaces operator new by one that counts, and fails when it is told. Alone in its file, so that no caller sees
// through it to malloc.
#include "base/allocation_count_testing.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> g_num_allocations{0};
std::atomic<size_t> g_min_bytes_of_failure{SIZE_MAX};
thread_local size_t t_min_bytes_of_failure = SIZE_MAX;
}  // namespace

void* operator new(size_t size) {
  ++g_num_allocations;
  if (size >= t_min_bytes_of_failure) {
    t_min_bytes_of_failure = SIZE_MAX;
    throw std::bad_alloc();
  }
  for (size_t min_bytes = g_min_bytes_of_failure; size >= min_bytes;) {
    if (g_min_bytes_of_failure.compare_exchange_weak(min_bytes, SIZE_MAX)) throw std::bad_alloc();
  }
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

void fail_next_allocation(size_t min_bytes) { t_min_bytes_of_failure = min_bytes; }
void fail_next_allocation_of_any_thread(size_t min_bytes) { g_min_bytes_of_failure = min_bytes; }
bool has_failed_allocation() { return t_min_bytes_of_failure == SIZE_MAX && g_min_bytes_of_failure == SIZE_MAX; }

}  // namespace transept::testing
