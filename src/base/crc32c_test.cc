// Both ways against RFC 3720's vectors (appendix B.4) and against the definition, bit by bit.
#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <utility>
#include <vector>

namespace transept {
namespace {

std::vector<std::byte> counted(int size, int first, int step) {
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(std::exchange(first, first + step));
  return bytes;
}

uint32_t by_bits(std::span<const std::byte> bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78 : crc >> 1;
  }
  return ~crc;
}

void expect_crc(std::span<const std::byte> bytes, uint32_t crc) {
  EXPECT_EQ(crc32c(bytes), crc);
  EXPECT_EQ(crc32c_by_tables(bytes), crc);
}

TEST(Crc32c, IsThatOfRfc3720) {
  expect_crc(counted(32, 0, 0), 0x8A9136AA);
  expect_crc(counted(32, 0xFF, 0), 0x62A8AB43);
  expect_crc(counted(32, 0, 1), 0x46DD794E);
  expect_crc(counted(32, 31, -1), 0x113FDB5C);
  // An iSCSI SCSI Read (10) command PDU.
  std::vector<std::byte> command(48);
  const auto put = [&](size_t at, uint8_t value) { command[at] = static_cast<std::byte>(value); };
  put(0, 0x01), put(1, 0xC0), put(16, 0x14), put(22, 0x04), put(27, 0x14), put(31, 0x18), put(32, 0x28), put(40, 0x02);
  expect_crc(command, 0xD9963A56);
  expect_crc(std::as_bytes(std::span(std::string_view("123456789"))), 0xE3069283);  // the usual check value
  expect_crc({}, 0);
}

TEST(Crc32c, AnyLengthAtAnyAddressInAnyPieces) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(300);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 0; size < 100; ++size) {
      const auto part = std::span<const std::byte>(bytes).subspan(begin, size);
      const uint32_t expected = by_bits(part);
      expect_crc(part, expected);
      for (size_t cut = 0; cut <= size; cut += 7) {
        EXPECT_EQ(crc32c(part.subspan(cut), crc32c(part.first(cut))), expected);
        EXPECT_EQ(crc32c_by_tables(part.subspan(cut), crc32c_by_tables(part.first(cut))), expected);
      }
    }
  }
}

}  // namespace
}  // namespace transept
