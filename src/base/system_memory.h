// Memory of the machine and of this process, as start-up checks it. Functions of the system's state, thread-safe.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace transept {

inline constexpr uint64_t kMaxKvBlocks = 1u << 30;  // block ids are int32

// Checks whether a KV pool of the requested size is possible. Pages are taken as blocks are first used, so a pool that
// is too large would end the process in the middle of its work, long after start-up. Errors give both numbers.
Status check_kv_memory(uint64_t wanted, uint64_t block_bytes, uint64_t total_memory);

// Returns the bytes that this process may still take: the machine's available memory, or what its control group leaves
// if less.
uint64_t available_memory_bytes();

// Returns all memory that this process could ever have: the machine's, or its control group's limit if less.
uint64_t total_memory_bytes();

// Returns the most memory that this process has held (peak resident set), for reports.
uint64_t peak_resident_bytes();

}  // namespace transept
