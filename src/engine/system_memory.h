#pragma once

#include <cstdint>

namespace transept {

// Bytes that this process may still take: the machine's available memory, or what its control group leaves if less.
uint64_t available_memory_bytes();

// The most memory this process has held (peak resident set), for reports.
uint64_t peak_resident_bytes();

}  // namespace transept
