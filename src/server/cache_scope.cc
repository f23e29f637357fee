#include "server/cache_scope.h"

#include <array>
#include <random>
#include <span>

#include "base/ascii.h"
#include "base/strings.h"
#include "net/websocket_handshake.h"

namespace transept {
namespace {

std::shared_ptr<const HmacSha256> make_secret() {
  std::array<uint32_t, 8> words{};
  std::random_device random;
  for (uint32_t& word : words) word = random();
  auto secret = std::make_shared<const HmacSha256>(std::as_bytes(std::span(words)));
  wipe(std::as_writable_bytes(std::span(words)));
  return secret;
}

}  // namespace

CacheSalts::CacheSalts() : secret_(make_secret()) {}

std::string CacheSalts::salt_of(CacheScope scope, std::string_view api_key,
                                const std::optional<std::string>& own) const {
  if (scope != CacheScope::kKey) return own.value_or("");
  const uint64_t key_size = api_key.size();
  const std::string_view salt = own.has_value() ? std::string_view(*own) : std::string_view();
  const HmacSha256::Code code =
      secret_->code({std::as_bytes(std::span(&key_size, 1)), std::as_bytes(std::span(api_key.data(), api_key.size())),
                     std::as_bytes(std::span(salt.data(), salt.size()))});
  return std::string(reinterpret_cast<const char*>(code.data()), code.size());
}

std::string_view bearer_of(const HttpRequest& request) {
  const std::string* header = request.header("Authorization");
  if (header == nullptr) return {};
  const std::string_view value = *header;
  return ascii_lower(value.substr(0, 7)) == "bearer " ? trim(value.substr(7)) : std::string_view();
}

std::string_view api_key_of(const HttpRequest& request) {
  constexpr std::string_view kPrefix = "openai-insecure-api-key.";
  if (const std::string_view key = bearer_of(request); !key.empty()) return key;
  if (request.header("Upgrade") == nullptr) return {};
  for (const std::string_view name : offered_subprotocols(request)) {
    if (name.starts_with(kPrefix)) return name.substr(kPrefix.size());
  }
  return {};
}

}  // namespace transept
