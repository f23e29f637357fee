#include "base/content_digest.h"

#include <openssl/evp.h>

#include "base/check.h"
#include "base/hex.h"

namespace transept {

// Calls fail where there is no memory, or no SHA-256 in the library: nothing that an input decides.
struct DigestBuilder::Context {
  EVP_MD_CTX* const sha256 = EVP_MD_CTX_new();

  Context() { CHECK(sha256 != nullptr && EVP_DigestInit_ex(sha256, EVP_sha256(), nullptr) == 1); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(sha256); }
};

DigestBuilder::DigestBuilder() : context_(std::make_unique<Context>()) {}
DigestBuilder::~DigestBuilder() = default;

void DigestBuilder::add_number(int64_t number) {
  std::array<std::byte, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(static_cast<uint64_t>(number) >> (8 * i));
  add_bytes(bytes);
}

void DigestBuilder::add_text(std::string_view text) {
  add_number(static_cast<int64_t>(text.size()));
  add_bytes(std::as_bytes(std::span(text)));
}

void DigestBuilder::add_bytes(std::span<const std::byte> bytes) {
  CHECK(EVP_DigestUpdate(context_->sha256, bytes.data(), bytes.size()) == 1);
}

ContentDigest DigestBuilder::finish() {
  ContentDigest digest;
  unsigned int size = 0;
  CHECK(EVP_DigestFinal_ex(context_->sha256, reinterpret_cast<unsigned char*>(digest.bytes.data()), &size) == 1);
  CHECK(size == digest.bytes.size());
  return digest;
}

std::string digest_hex(const ContentDigest& digest) { return hex_text(digest.bytes); }

}  // namespace transept
