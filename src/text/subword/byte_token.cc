#include "text/subword/byte_token.h"

namespace transept {
namespace {

std::optional<int> digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return std::nullopt;
}

}  // namespace

std::string byte_token(uint8_t byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

std::optional<uint8_t> parse_byte_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const std::optional<int> high = digit_value(token[3]), low = digit_value(token[4]);
  if (!high.has_value() || !low.has_value()) return std::nullopt;
  return static_cast<uint8_t>(*high * 16 + *low);
}

}  // namespace transept
