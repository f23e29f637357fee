// Who may find what was computed for whom. A request that finds its input computed is answered sooner, so that its
// client can tell that another one sent the same: a salt keeps them apart. Immutable: thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/hmac_sha256.h"
#include "net/http.h"

namespace transept {

enum class CacheScope : uint8_t {
  kGlobal,  // all requests share, unless their cache_salt differs
  kKey,     // those of one API key share with each other alone
  kOff,     // no request shares with another, at the same time or later
};

class CacheSalts final {
 public:
  // With a secret of its own, so that no salt can be known before the server starts.
  CacheSalts();

  // Returns EncoderDecoderInputs::cache_salt of a request with this key and this cache_salt: "" for none of either.
  // A request's own salt narrows, and never widens: equal salts of two keys differ.
  std::string salt_of(CacheScope scope, std::string_view api_key, const std::optional<std::string>& own) const;

 private:
  std::shared_ptr<const HmacSha256> secret_;
};

// The key of "Authorization: Bearer KEY"; "": none. A view of the request.
std::string_view bearer_of(const HttpRequest& request);
// The same; else, of a request for a WebSocket, that of the subprotocol "openai-insecure-api-key.KEY", which is how
// pages give one: a browser's WebSocket has no headers.
std::string_view api_key_of(const HttpRequest& request);

}  // namespace transept
