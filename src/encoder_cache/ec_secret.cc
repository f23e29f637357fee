#include "encoder_cache/ec_secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/input_file.h"

namespace transept {
namespace {

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

struct FreeContext {
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using MacContext = std::unique_ptr<EVP_MAC_CTX, FreeContext>;

// Bytes that are wiped when they are no longer needed.
struct Wiped {
  explicit Wiped(size_t size) : bytes(size) {}
  ~Wiped() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  std::vector<std::byte> bytes;
};

}  // namespace

// With the key, before any bytes. Calls fail where there is no memory, or no HMAC in the library.
struct EcSecret::Context {
  MacContext keyed;
};

EcSecret::EcSecret(std::span<const std::byte> secret) {
  CHECK(secret.size() >= kMinEcSecretBytes && secret.size() <= kMaxEcSecretBytes, "a secret of another size");
  EVP_MAC* const hmac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  CHECK(hmac != nullptr, "libcrypto has no HMAC");
  MacContext keyed(EVP_MAC_CTX_new(hmac));  // holds a reference to hmac
  EVP_MAC_free(hmac);
  char sha256[] = "SHA256";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", sha256, 0), OSSL_PARAM_construct_end()};
  const auto* const key = reinterpret_cast<const unsigned char*>(secret.data());
  CHECK(keyed != nullptr && EVP_MAC_init(keyed.get(), key, secret.size(), params) == 1);
  context_ = std::make_unique<const Context>(Context{std::move(keyed)});
}

EcSecret::EcSecret(EcSecret&&) noexcept = default;
EcSecret& EcSecret::operator=(EcSecret&&) noexcept = default;
EcSecret::~EcSecret() = default;

StatusOr<EcSecret> EcSecret::read(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, InputFile::open(path));
  struct stat info {};
  if (::fstat(file->descriptor(), &info) != 0) return invalid_argument(path, ": ", std::strerror(errno));
  if ((info.st_mode & kOthers) != 0) {
    return invalid_argument(path, ": is open to other users than its owner; chmod 600 closes it");
  }
  // Before it is read: the file may be anything.
  const auto size_error = [&](size_t size) {
    return invalid_argument(path, ": has a secret of ", size, " bytes; ", kMinEcSecretBytes, " to ", kMaxEcSecretBytes,
                            " are allowed");
  };
  if (file->size() > kMaxEcSecretBytes + 1) return size_error(file->size());
  Wiped content(file->size());
  if (const Status read = file->read(0, content.bytes); !read.ok()) return with_prefix(read, path);
  std::span<const std::byte> secret = content.bytes;
  if (!secret.empty() && secret.back() == std::byte{'\n'}) secret = secret.first(secret.size() - 1);
  if (secret.size() < kMinEcSecretBytes || secret.size() > kMaxEcSecretBytes) return size_error(secret.size());
  return EcSecret(secret);
}

EcMac EcSecret::mac(Parts parts) const {
  const MacContext context(EVP_MAC_CTX_dup(context_->keyed.get()));
  CHECK(context != nullptr);
  for (const auto part : parts) {
    CHECK(EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(part.data()), part.size()) == 1);
  }
  std::array<unsigned char, 32> whole;
  size_t size = 0;
  CHECK(EVP_MAC_final(context.get(), whole.data(), &size, whole.size()) == 1 && size == whole.size());
  EcMac mac;
  std::memcpy(mac.data(), whole.data(), mac.size());
  return mac;
}

bool EcSecret::verifies(const EcMac& mac, Parts parts) const {
  const EcMac expected = this->mac(parts);
  return CRYPTO_memcmp(expected.data(), mac.data(), mac.size()) == 0;
}

}  // namespace transept
