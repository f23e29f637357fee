#include "text/subword/byte_level.h"

#include <array>

#include "base/utf8.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

constexpr bool is_printable(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

// Printable bytes stand for themselves, the others for U+0100 and on.
constexpr std::array<uint16_t, 256> kByteToChar = [] {
  std::array<uint16_t, 256> table{};
  uint16_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) table[byte] = is_printable(byte) ? static_cast<uint16_t>(byte) : next++;
  return table;
}();

constexpr uint32_t kEndOfByteChars = 256 + 68;

constexpr std::array<int16_t, kEndOfByteChars> kCharToByte = [] {
  std::array<int16_t, kEndOfByteChars> table{};
  for (int16_t& byte : table) byte = -1;
  for (int16_t byte = 0; byte < 256; ++byte) table[kByteToChar[static_cast<size_t>(byte)]] = byte;
  return table;
}();

// The length of 's, 't, 're, 've, 'm, 'll, 'd at the front of `text`, or 0.
size_t contraction_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  switch (text[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd': return 2;
    default: break;
  }
  const std::string_view two = text.substr(1, 2);
  return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
}

}  // namespace

void split_gpt2(std::string_view whole, TextRange range, std::vector<TextRange>& words) {
  const std::string_view text = whole.substr(0, range.end);
  size_t begin = range.begin;
  const auto class_at = [text](size_t position, size_t& after) {
    after = position;
    return char_class(next_code_point(text, after));
  };
  while (begin < text.size()) {
    size_t end = begin + contraction_length(text.substr(begin));
    if (end == begin) {
      CharClass run = class_at(begin, end);
      size_t last = begin;  // where the last character of the run begins
      size_t after = end;
      if (text[begin] == ' ' && end < text.size() && class_at(end, after) != CharClass::kSpace) {
        run = class_at(end, after);
        end = after;
      }
      while (end < text.size() && class_at(end, after) == run) {
        last = end;
        end = after;
      }
      // \s+(?!\S): the last space before a word belongs to the word, or stands alone.
      if (run == CharClass::kSpace && end < text.size() && last > begin) end = last;
    }
    words.push_back({begin, end});
    begin = end;
  }
}

void append_byte_characters(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const uint16_t code_point = kByteToChar[static_cast<uint8_t>(c)];
    if (code_point < 0x80) {
      out.push_back(static_cast<char>(code_point));
    } else {
      out.push_back(static_cast<char>(0xC0 | (code_point >> 6)));
      out.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
    }
  }
}

void append_token_bytes(std::string_view token, std::string& out) {
  const size_t old_size = out.size();
  for (size_t i = 0; i < token.size();) {
    const uint32_t c = next_code_point(token, i);
    if (c >= kEndOfByteChars || kCharToByte[c] < 0) {
      out.resize(old_size);
      out.append(token);
      return;
    }
    out.push_back(static_cast<char>(kCharToByte[c]));
  }
}

}  // namespace transept
