// CRC-32C (Castagnoli), the checksum of iSCSI (RFC 3720, section 12.1 and appendix B.4): reflected polynomial
// 0x82F63B78, starts and ends inverted. It finds accidents, not forgeries. Pure functions: thread-safe.
//
// Own code: Abseil 20220623 of Debian 12 has none, and one more shared library for these few lines would have to be
// linked into every package.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace transept {

// Returns the checksum of `bytes`; with the checksum of the bytes before them, that of all together.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

// The same by tables alone: what crc32c() is where processors have no instruction for it.
uint32_t crc32c_by_tables(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace transept
