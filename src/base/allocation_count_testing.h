// For tests: how often operator new was called in this test binary, and that it fails (allocation_count_testlib.cc).
#pragma once

#include <cstddef>
#include <cstdint>

namespace transept::testing {

int64_t num_allocations();

// The next call for at least so many bytes, on whatever thread, throws std::bad_alloc.
void fail_next_allocation(size_t min_bytes);
// Whether it has.
bool has_failed_allocation();

}  // namespace transept::testing
