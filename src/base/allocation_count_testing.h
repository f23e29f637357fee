// For tests: how often operator new was called in this test binary, and that it fails (allocation_count_testlib.cc).
#pragma once

#include <cstddef>
#include <cstdint>

namespace transept::testing {

int64_t num_allocations();

// The calling thread's next call for at least so many bytes throws std::bad_alloc. SIZE_MAX: none does.
void fail_next_allocation(size_t min_bytes);
// The next one of any thread: for a test whose other threads all survive it.
void fail_next_allocation_of_any_thread(size_t min_bytes);
// Whether it has, on the calling thread for the first.
bool has_failed_allocation();

}  // namespace transept::testing
