#pragma once

#include <cstdint>

#include "base/status.h"

namespace transept {

inline constexpr uint64_t kMaxKvBlocks = 1u << 30;  // block ids are int32

// Whether a KV pool of a size that the user gave is possible: pages are taken as blocks are first used, so that one
// that is too large would end the process in the middle of its work, long after start-up. Errors give both numbers.
Status check_kv_memory(uint64_t wanted, uint64_t block_bytes, uint64_t total_memory);

// Bytes that this process may still take: the machine's available memory, or what its control group leaves if less.
uint64_t available_memory_bytes();

// All memory that this process could ever have: the machine's, or its control group's limit if less.
uint64_t total_memory_bytes();

// The most memory this process has held (peak resident set), for reports.
uint64_t peak_resident_bytes();

}  // namespace transept
