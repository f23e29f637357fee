#include "base/crc32c.h"

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

#include <array>

#include "base/little_endian.h"

namespace transept {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;

// Table k has the checksum of a byte that k zero bytes follow: eight bytes are eight independent look-ups.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t shorter = tables[k - 1][byte];
      tables[k][byte] = (shorter >> 8) ^ tables[0][shorter & 0xFF];
    }
  }
  return tables;
}();

}  // namespace

uint32_t crc32c_by_tables(std::span<const std::byte> bytes, uint32_t before) {
  uint64_t crc = ~before;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const uint64_t word = little_endian<uint64_t>(bytes.data()) ^ crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xFF];
  }
  for (const std::byte byte : bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint64_t>(byte)) & 0xFF];
  return ~static_cast<uint32_t>(crc);
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
#ifdef __SSE4_2__
  uint64_t crc = ~before;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) crc = _mm_crc32_u64(crc, little_endian<uint64_t>(bytes.data()));
  auto last = static_cast<uint32_t>(crc);
  for (const std::byte byte : bytes) last = _mm_crc32_u8(last, static_cast<uint8_t>(byte));
  return ~last;
#else
  return crc32c_by_tables(bytes, before);
#endif
}

}  // namespace transept
