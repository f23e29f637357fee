#include "server/client_secrets.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <random>
#include <span>

#include "base/base64.h"
#include "base/hex.h"
#include "base/strings.h"

namespace transept {
namespace {

constexpr std::string_view kPrefix = "ek_";
constexpr std::string_view kPurpose = "transept client secret";
constexpr size_t kCodeDigits = 64;  // hexadecimal
constexpr char kBetween = '.';

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// RFC 4648, section 5, without padding: what may stand in the name of a subprotocol.
std::string url_base64(std::string_view bytes) {
  std::string text = encode_base64(bytes);
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::optional<std::string> bytes_of_url_base64(std::string_view text) {
  std::string plain(text);
  if (plain.find_first_of("+/=") != std::string::npos) return std::nullopt;
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  plain.append((4 - plain.size() % 4) % 4, '=');
  return decode_base64(plain);
}

}  // namespace

ClientSecrets::ClientSecrets() {
  std::array<uint32_t, 8> words{};
  std::random_device random;
  for (uint32_t& word : words) word = random();
  secret_ = std::make_shared<const HmacSha256>(std::as_bytes(std::span(words)));
  wipe(std::as_writable_bytes(std::span(words)));
}

// A key of its own: no code of this one is one that instances prove themselves with.
ClientSecrets::ClientSecrets(const EcSecret& fleet) {
  std::array<EcMac, 2> halves = {fleet.mac({bytes_of(kPurpose), bytes_of("1")}),
                                 fleet.mac({bytes_of(kPurpose), bytes_of("2")})};
  secret_ = std::make_shared<const HmacSha256>(std::as_bytes(std::span(halves)));
  wipe(std::as_writable_bytes(std::span(halves)));
}

HmacSha256::Code ClientSecrets::code_of(std::string_view text) const {
  return secret_->code({bytes_of(kPurpose), bytes_of(text)});
}

std::string ClientSecrets::make(int64_t expires_at, std::string_view payload) const {
  const std::string text = str_cat(expires_at, kBetween, url_base64(payload));
  return str_cat(kPrefix, hex_text(code_of(text)), kBetween, text);
}

std::optional<std::string> ClientSecrets::payload_of(std::string_view key, int64_t now) const {
  if (!key.starts_with(kPrefix)) return std::nullopt;
  key.remove_prefix(kPrefix.size());
  if (key.size() <= kCodeDigits || key[kCodeDigits] != kBetween) return std::nullopt;
  const std::string_view text = key.substr(kCodeDigits + 1);
  const std::string code = hex_text(code_of(text));
  if (!equal_in_constant_time(bytes_of(code), bytes_of(key.substr(0, kCodeDigits)))) {
    return std::nullopt;
  }
  const size_t end = text.find(kBetween);
  if (end == std::string_view::npos) return std::nullopt;
  int64_t expires_at = 0;
  std::from_chars(text.data(), text.data() + end, expires_at);
  if (now >= expires_at) return std::nullopt;
  return bytes_of_url_base64(text.substr(end + 1));
}

}  // namespace transept
