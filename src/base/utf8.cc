#include "base/utf8.h"

namespace transept {

Utf8Step read_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {Utf8Step::Kind::kValid, lead, 1};
  int needed;
  uint32_t code_point;
  uint8_t low = 0x80,
          high = 0xBF;  // what the second byte may be: no overlong forms, no surrogates, nothing past U+10FFFF
  if (lead >= 0xC2 && lead <= 0xDF) {
    needed = 1;
    code_point = lead & 0x1Fu;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    needed = 2;
    code_point = lead & 0x0Fu;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    needed = 3;
    code_point = lead & 0x07u;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {Utf8Step::Kind::kInvalid, 0, 1};
  }
  for (int i = 1; i <= needed; ++i) {
    if (static_cast<size_t>(i) >= text.size()) return {Utf8Step::Kind::kIncomplete, 0, i};
    const uint8_t next = byte(static_cast<size_t>(i));
    if (next < low || next > high) return {Utf8Step::Kind::kInvalid, 0, i};
    low = 0x80;
    high = 0xBF;
    code_point = (code_point << 6) | (next & 0x3Fu);
  }
  return {Utf8Step::Kind::kValid, code_point, needed + 1};
}

void append_utf8(std::string& out, uint32_t c) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

namespace {

std::string sanitize(std::string_view text, bool each_byte) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = read_utf8(text);
    if (step.kind == Utf8Step::Kind::kValid) {
      out.append(text.substr(0, static_cast<size_t>(step.num_bytes)));
    } else {
      for (int i = 0; i < (each_byte ? step.num_bytes : 1); ++i) out.append(kReplacementUtf8);
    }
    text.remove_prefix(static_cast<size_t>(step.num_bytes));
  }
  return out;
}

}  // namespace

std::string sanitize_utf8(std::string_view text) { return sanitize(text, /*each_byte=*/false); }

std::string sanitize_utf8_bytes(std::string_view text) { return sanitize(text, /*each_byte=*/true); }

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = read_utf8(text);
    if (step.kind != Utf8Step::Kind::kValid) return false;
    text.remove_prefix(static_cast<size_t>(step.num_bytes));
  }
  return true;
}

}  // namespace transept
