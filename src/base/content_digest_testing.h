// For tests: digests of no content, told apart by numbers, and digests as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/content_digest.h"

namespace transept::testing {

inline ContentDigest digest_of(uint64_t first, uint64_t second = 0) {
  ContentDigest digest;
  std::memcpy(digest.bytes.data(), &first, sizeof first);
  std::memcpy(digest.bytes.data() + sizeof first, &second, sizeof second);
  return digest;
}

// 64 lower-case hexadecimal digits, as hashlib's hexdigest prints them.
inline std::string printed(const ContentDigest& digest) {
  std::string text;
  for (const std::byte byte : digest.bytes) {
    text += "0123456789abcdef"[static_cast<int>(byte) / 16];
    text += "0123456789abcdef"[static_cast<int>(byte) % 16];
  }
  return text;
}

}  // namespace transept::testing
