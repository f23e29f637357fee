// The secret that instances of one fleet share (--ec-secret-file), and the codes that prove it: the first half of
// HMAC-SHA-256 (RFC 2104, by OpenSSL's libcrypto). Nothing is encrypted by it. The bytes of the secret are in OpenSSL's
// context alone, which wipes them; no error and no log names them.
//
// Owned by the connector. Immutable, so thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace transept {

using EcMac = std::array<std::byte, 16>;

inline constexpr size_t kMinEcSecretBytes = 16, kMaxEcSecretBytes = 4096;

class EcSecret final {
 public:
  // Reads a file, whose last byte is not part of the secret if it ends a line. Errors, which name the path: as
  // InputFile; kInvalidArgument if the group or others may read, write or execute it, or if the secret is shorter than
  // kMinEcSecretBytes or longer than kMaxEcSecretBytes.
  static StatusOr<EcSecret> read(const std::string& path);
  // REQUIRES: kMinEcSecretBytes to kMaxEcSecretBytes.
  explicit EcSecret(std::span<const std::byte> secret);
  EcSecret(EcSecret&&) noexcept;
  EcSecret& operator=(EcSecret&&) noexcept;
  ~EcSecret();

  using Parts = std::initializer_list<std::span<const std::byte>>;
  // Returns the code of `parts`, one after the other.
  EcMac mac(Parts parts) const;
  // Takes the same time for every code that is wrong.
  bool verifies(const EcMac& mac, Parts parts) const;

 private:
  struct Context;
  std::unique_ptr<const Context> context_;
};

}  // namespace transept
