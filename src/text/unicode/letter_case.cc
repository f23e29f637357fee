#include "text/unicode/letter_case.h"

#include <utf8proc.h>

#include <array>
#include <span>

#include "base/utf8.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

using CodePoint = utf8proc_int32_t;

CodePoint as_code_point(uint32_t c) { return static_cast<CodePoint>(c); }

// The case folding of more than one character; else nothing. The upper case of such a character is that of its folding
// ("ß" and "ŉ" have no upper case of one character), but for capitals.
class LongFolding final {
 public:
  explicit LongFolding(uint32_t c) {
    if (utf8proc_category(as_code_point(c)) == UTF8PROC_CATEGORY_LU) return;
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        as_code_point(c), buffer_.data(), static_cast<utf8proc_ssize_t>(buffer_.size()), UTF8PROC_CASEFOLD, &boundary);
    if (count > 1) count_ = static_cast<size_t>(count);
  }

  std::span<const CodePoint> code_points() const { return std::span(buffer_).first(count_); }

 private:
  std::array<CodePoint, 8> buffer_{};
  size_t count_ = 0;
};

void append_upper(std::string& out, uint32_t c) {
  const LongFolding folding(c);
  if (folding.code_points().empty()) {
    append_utf8(out, static_cast<uint32_t>(utf8proc_toupper(as_code_point(c))));
    return;
  }
  for (const CodePoint folded : folding.code_points())
    append_utf8(out, static_cast<uint32_t>(utf8proc_toupper(folded)));
}

}  // namespace

std::string uppercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = next_code_point(text, i);
    if (c < 0x80) {
      out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    } else {
      append_upper(out, c);
    }
  }
  return out;
}

void append_titlecase(std::string& out, uint32_t c) {
  constexpr CodePoint kSmallIota = 0x3B9;
  constexpr uint32_t kIotaBelow = 0x345;
  constexpr uint32_t kSharpS = 0xDF;       // utf8proc has a capital of one character, which Unicode does not
  constexpr uint32_t kNWithQuote = 0x149;  // its first character has no case
  if (c == kSharpS || c == kNWithQuote) {
    out += c == kSharpS ? "Ss" : "\xCA\xBCN";
    return;
  }
  const auto title = static_cast<uint32_t>(utf8proc_totitle(as_code_point(c)));
  const LongFolding folding(c);
  if (title != c || folding.code_points().empty() || is_titlecase(c)) {
    append_utf8(out, title);
    return;
  }
  const std::span<const CodePoint> folded = folding.code_points();
  append_utf8(out, static_cast<uint32_t>(utf8proc_totitle(folded[0])));
  for (const CodePoint next : folded.subspan(1)) {
    append_utf8(out, next == kSmallIota ? kIotaBelow : static_cast<uint32_t>(next));
  }
}

bool is_uppercase(uint32_t c) { return utf8proc_isupper(as_code_point(c)) != 0; }
bool is_lowercase(uint32_t c) { return utf8proc_islower(as_code_point(c)) != 0; }
bool is_titlecase(uint32_t c) { return utf8proc_category(as_code_point(c)) == UTF8PROC_CATEGORY_LT; }

bool is_printable(uint32_t c) {
  if (c == ' ') return true;
  switch (utf8proc_category(as_code_point(c))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO: return false;
    default: return true;
  }
}

}  // namespace transept
