#include "base/hmac_sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <utility>

#include "base/check.h"

namespace transept {
namespace {

const unsigned char* chars(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

struct FreeContext {
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using MacContext = std::unique_ptr<EVP_MAC_CTX, FreeContext>;

}  // namespace

// With the key, before any bytes.
struct HmacSha256::Context {
  MacContext keyed;
};

HmacSha256::HmacSha256(std::span<const std::byte> key) {
  EVP_MAC* const hmac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  CHECK(hmac != nullptr, "libcrypto has no HMAC");
  MacContext keyed(EVP_MAC_CTX_new(hmac));
  EVP_MAC_free(hmac);  // the context keeps it
  char sha256[] = "SHA256";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", sha256, 0), OSSL_PARAM_construct_end()};
  CHECK(keyed != nullptr && EVP_MAC_init(keyed.get(), chars(key), key.size(), params) == 1);
  context_ = std::make_unique<const Context>(Context{std::move(keyed)});
}

HmacSha256::HmacSha256(HmacSha256&&) noexcept = default;
HmacSha256& HmacSha256::operator=(HmacSha256&&) noexcept = default;
HmacSha256::~HmacSha256() = default;

HmacSha256::Code HmacSha256::code(Parts parts) const {
  const MacContext context(EVP_MAC_CTX_dup(context_->keyed.get()));
  CHECK(context != nullptr);
  for (const auto part : parts) CHECK(EVP_MAC_update(context.get(), chars(part), part.size()) == 1);
  Code code;
  size_t size = 0;
  auto* const out = reinterpret_cast<unsigned char*>(code.data());
  CHECK(EVP_MAC_final(context.get(), out, &size, code.size()) == 1 && size == code.size());
  return code;
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  CHECK(a.size() == b.size());
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void wipe(std::span<std::byte> bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

}  // namespace transept
