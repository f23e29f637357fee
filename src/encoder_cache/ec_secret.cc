#include "encoder_cache/ec_secret.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/hex.h"
#include "base/input_file.h"

namespace transept {
namespace {

// Permissions that a secret's file must not have.
mode_t too_open(uid_t owner) { return owner == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO; }

// Bytes that are wiped when they are no longer needed.
struct Wiped {
  explicit Wiped(size_t size) : bytes(size) {}
  ~Wiped() { wipe(bytes); }
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  std::vector<std::byte> bytes;
};

}  // namespace

EcSecret::EcSecret(std::span<const std::byte> secret) : hmac_(secret) {
  CHECK(secret.size() >= kMinEcSecretBytes && secret.size() <= kMaxEcSecretBytes, "a secret of another size");
}

StatusOr<EcSecret> EcSecret::read(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, InputFile::open(path));
  struct stat info {};
  if (::fstat(file->descriptor(), &info) != 0) return invalid_argument(path, ": ", std::strerror(errno));
  if ((info.st_mode & too_open(info.st_uid)) != 0) {
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

EcMac EcSecret::mac(HmacSha256::Parts parts) const {
  const HmacSha256::Code code = hmac_.code(parts);
  EcMac mac;
  std::copy_n(code.begin(), mac.size(), mac.begin());
  return mac;
}

bool EcSecret::verifies(const EcMac& mac, HmacSha256::Parts parts) const {
  return equal_in_constant_time(this->mac(parts), mac);
}

std::string EcSecret::mark() const {
  constexpr std::string_view kPurpose = "transept mark\n";  // no frame and no call begins so
  return hex_text(mac({std::as_bytes(std::span(kPurpose))}));
}

}  // namespace transept
