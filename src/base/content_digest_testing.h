// For tests: digests of no content, told apart by numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/content_digest.h"

namespace transept::testing {

inline ContentDigest digest_of(uint64_t first, uint64_t second = 0) {
  ContentDigest digest;
  std::memcpy(digest.bytes.data(), &first, sizeof first);
  std::memcpy(digest.bytes.data() + sizeof first, &second, sizeof second);
  return digest;
}

}  // namespace transept::testing
