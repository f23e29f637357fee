#include "comm/group_proof.h"

#include <sys/random.h>

#include "base/check.h"
#include "base/hmac_sha256.h"

namespace transept {

ControlBytes group_proof(const std::string& token, ProofOf of, const ControlBytes& nonce, int rank) {
  const std::string key = "transept ranks:" + token;  // a key may not be empty
  const std::array<std::byte, 2> context = {static_cast<std::byte>(of), static_cast<std::byte>(rank)};
  return HmacSha256(std::as_bytes(std::span(key))).code({context, nonce});
}

ControlBytes random_bytes() {
  ControlBytes bytes{};
  // Up to 256 bytes come whole, and no signal interrupts that (getrandom(2)).
  CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "no random bytes");
  return bytes;
}

}  // namespace transept
