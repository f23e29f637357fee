// Keys of a short life for pages whose visitors must not see an API key: OpenAI's ephemeral keys, "ek_...". They hold
// when they end and what they are for, with a code of a secret that the server draws at its start, or that a fleet has;
// nothing is stored.
// Immutable: thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/hmac_sha256.h"
#include "encoder_cache/ec_secret.h"

namespace transept {

class ClientSecrets final {
 public:
  static constexpr int64_t kMinSeconds = 10, kMaxSeconds = 7200, kDefaultSeconds = 600;
  // A subprotocol may be no longer (websocket_handshake.h).
  static constexpr size_t kMaxPayloadBytes = 2048;

  // With a secret of its own.
  ClientSecrets();
  // With one of the fleet's: a key of one instance holds for all of them.
  explicit ClientSecrets(const EcSecret& fleet);

  // Times are seconds since 1970. REQUIRES: at most kMaxPayloadBytes.
  std::string make(int64_t expires_at, std::string_view payload) const;
  // Returns the payload of a key that make() made and that has not expired at `now`.
  std::optional<std::string> payload_of(std::string_view key, int64_t now) const;

 private:
  HmacSha256::Code code_of(std::string_view text) const;

  std::shared_ptr<const HmacSha256> secret_;
};

}  // namespace transept
