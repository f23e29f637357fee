// The secret that instances of one fleet share (--ec-secret-file), and the codes that prove it: the first half of
// HMAC-SHA-256. Nothing is encrypted by it. No error and no log names its bytes.
//
// Owned by the connector. Immutable, so thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/hmac_sha256.h"
#include "base/status.h"

namespace transept {

using EcMac = std::array<std::byte, 16>;

inline constexpr size_t kMinEcSecretBytes = 16, kMaxEcSecretBytes = 4096;

class EcSecret final {
 public:
  // Reads a file; a newline at its end is not part of the secret. Errors, which name the path: as InputFile;
  // kInvalidArgument if the group or others may read, write or execute it, or if the secret is shorter than
  // kMinEcSecretBytes or longer than kMaxEcSecretBytes. The group may read a file that root owns: Kubernetes gives a
  // secret so to a process that is not root (as libpq takes keys).
  static StatusOr<EcSecret> read(const std::string& path);
  // REQUIRES: kMinEcSecretBytes to kMaxEcSecretBytes.
  explicit EcSecret(std::span<const std::byte> secret);

  // Returns the code of `parts`, one after the other.
  EcMac mac(HmacSha256::Parts parts) const;
  // Takes the same time for every code that is wrong.
  bool verifies(const EcMac& mac, HmacSha256::Parts parts) const;

  // What instances show each other to find out whether they have one secret: 32 hexadecimal digits. A code as others,
  // so no more is learned of the secret from it than from a frame.
  std::string mark() const;

 private:
  HmacSha256 hmac_;
};

}  // namespace transept
