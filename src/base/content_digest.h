// The digest of a content: 256 bits of SHA-256 (FIPS 180-4, by OpenSSL's libcrypto), so that equal digests mean equal
// contents, also those of an attacker: two contents of one digest cannot be made. The caller chooses what is hashed,
// and in which order (core/encoder_features.h for encoder inputs).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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

// Takes a content piece by piece. Numbers and texts stand in it so that no two lists of them are the same bytes.
// Belongs to one thread at a time.
class DigestBuilder final {
 public:
  DigestBuilder();
  ~DigestBuilder();
  DigestBuilder(const DigestBuilder&) = delete;
  DigestBuilder& operator=(const DigestBuilder&) = delete;

  void add_number(int64_t number);                   // 8 bytes, lowest first
  void add_text(std::string_view text);              // its number of bytes, and they
  void add_bytes(std::span<const std::byte> bytes);  // as they are: their number is told by what stands before

  // Once, as the last call.
  ContentDigest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace transept
