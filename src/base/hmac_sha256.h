// HMAC-SHA-256 (RFC 2104, by OpenSSL's libcrypto): the code that proves that the maker of a message knows a key. The
// key's bytes are in OpenSSL's context alone, which wipes them at its end.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>

namespace transept {

// Immutable, so thread-safe. Functions CHECK that OpenSSL succeeds: failures are out of memory or a library without
// HMAC, never the input.
class HmacSha256 final {
 public:
  using Code = std::array<std::byte, 32>;
  using Parts = std::initializer_list<std::span<const std::byte>>;

  // REQUIRES: the key is not empty.
  explicit HmacSha256(std::span<const std::byte> key);
  HmacSha256(HmacSha256&&) noexcept;
  HmacSha256& operator=(HmacSha256&&) noexcept;
  ~HmacSha256();

  // Returns the code of `parts`, one after the other.
  Code code(Parts parts) const;

 private:
  struct Context;
  std::unique_ptr<const Context> context_;
};

// Takes the same time wherever the bytes differ. REQUIRES: equal sizes.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);

// Overwrites bytes that were secret; a compiler does not leave it out, as it may leave out a fill of memory that dies.
void wipe(std::span<std::byte> bytes);

}  // namespace transept
