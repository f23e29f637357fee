#include "base/base64.h"

#include <array>
#include <cstdint>

namespace transept {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoDigit = 64;

constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); ++i) values[static_cast<uint8_t>(kDigits[i])] = static_cast<uint8_t>(i);
  return values;
}();

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes(text.size() * 3 / 4, '\0');
  char* out = bytes.data();
  const char* in = text.data();
  const char* const end = in + text.size();
  const auto value = [](char digit) -> uint32_t { return kValues[static_cast<uint8_t>(digit)]; };
  uint32_t seen = 0;
  // Four digits at a time, without a branch between them.
  for (; end - in >= 4; in += 4) {
    const uint32_t a = value(in[0]), b = value(in[1]), c = value(in[2]), d = value(in[3]);
    seen |= a | b | c | d;
    const uint32_t bits = a << 18 | b << 12 | c << 6 | d;
    *out++ = static_cast<char>(bits >> 16 & 0xFF);
    *out++ = static_cast<char>(bits >> 8 & 0xFF);
    *out++ = static_cast<char>(bits & 0xFF);
  }
  uint32_t bits = 0;
  int num_bits = 0;
  for (; in != end; ++in) {
    seen |= value(*in);
    bits = bits << 6 | value(*in);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    *out++ = static_cast<char>(bits >> num_bits & 0xFF);
  }
  if ((seen & kNoDigit) != 0 || (bits & ((1u << num_bits) - 1)) != 0) return std::nullopt;
  return bytes;
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) bits = bits << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) text += i + j <= bytes.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

}  // namespace transept
