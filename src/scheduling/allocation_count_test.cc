// Replaces operator new by one that counts. In a file of its own, so that no caller sees through it to malloc.
#include "scheduling/allocation_count.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

namespace {
std::atomic<int64_t> g_num_allocations{0};
}  // namespace

void* operator new(size_t size) {
  ++g_num_allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace transept::testing {

int64_t num_allocations() { return g_num_allocations; }

namespace {

TEST(AllocationCount, Counts) {
  const int64_t before = num_allocations();
  std::vector<int> list(1);
  list.resize(1000);
  EXPECT_EQ(num_allocations() - before, 2);
}

}  // namespace
}  // namespace transept::testing
