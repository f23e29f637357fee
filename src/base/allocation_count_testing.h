// For tests: how often operator new was called in this test binary (defined in allocation_count_test.cc).
#pragma once

#include <cstdint>

namespace transept::testing {
int64_t num_allocations();
}  // namespace transept::testing
