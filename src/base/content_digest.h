// The digest of a content: SHA-256 (FIPS 180-4, by OpenSSL's libcrypto). Equal digests mean equal contents, also for
// contents that an attacker chose: no collision of SHA-256 is known. The caller decides which bytes to hash, and in
// which order (core/encoder_item.h does so for items).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace transept {

// A value: comparable, and a key of absl's hash tables.
struct ContentDigest {
  std::array<std::byte, 32> bytes{};

  bool operator==(const ContentDigest&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const ContentDigest& digest) {
    return H::combine_contiguous(std::move(state), digest.bytes.data(), digest.bytes.size());
  }
};

// Returns 64 lower-case hexadecimal digits.
std::string digest_hex(const ContentDigest& digest);

// Hashes a content piece by piece. Numbers and texts have fixed or prefixed lengths, so different values in the same
// sequence of calls give different bytes; the kinds of the calls are not hashed. Used by one thread at a time.
// Functions CHECK that OpenSSL succeeds: failures are out of memory or a library without SHA-256, never the input.
class DigestBuilder final {
 public:
  DigestBuilder();
  ~DigestBuilder();
  DigestBuilder(const DigestBuilder&) = delete;
  DigestBuilder& operator=(const DigestBuilder&) = delete;

  void add_number(int64_t number);                   // as 8 bytes, lowest first
  void add_text(std::string_view text);              // its size as a number, then its bytes
  void add_bytes(std::span<const std::byte> bytes);  // without their size, which earlier calls must determine

  // REQUIRES: called once, as the last call.
  ContentDigest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace transept
