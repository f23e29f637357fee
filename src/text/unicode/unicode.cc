#include "text/unicode/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"

namespace transept {
namespace {

utf8proc_category_t category(uint32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

bool is_letter_category(utf8proc_category_t c) { return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO; }
bool is_mark_category(utf8proc_category_t c) { return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME; }
bool is_number_category(utf8proc_category_t c) { return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO; }

constexpr CharClass ascii_class(uint32_t c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharClass::kLetter;
  if (c >= '0' && c <= '9') return CharClass::kNumber;
  if ((c >= 9 && c <= 13) || c == ' ') return CharClass::kSpace;
  return CharClass::kOther;
}

constexpr std::array<CharClass, 128> kAsciiClasses = [] {
  std::array<CharClass, 128> classes{};
  for (uint32_t c = 0; c < 128; ++c) classes[c] = ascii_class(c);
  return classes;
}();

// Other_Alphabetic beyond the marks (PropList.txt, Unicode 15.0): the circled and squared letters, of category So.
bool is_enclosed_letter(uint32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

void decompose_into(std::vector<utf8proc_int32_t>& out, uint32_t code_point, utf8proc_option_t options) {
  constexpr utf8proc_ssize_t kLongest = 32;  // U+FDFA, the longest of all, gives 18
  const size_t old_size = out.size();
  out.resize(old_size + kLongest);
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point),
                                                         out.data() + old_size, kLongest, options, &boundary);
  CHECK(count >= 0 && count <= kLongest);
  out.resize(old_size + static_cast<size_t>(count));
}

// utf8proc orders marks by insertion, which takes quadratic time for a long row of them.
void order_marks(std::vector<utf8proc_int32_t>& code_points) {
  const auto combining_class = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (size_t i = 0; i < code_points.size();) {
    if (combining_class(code_points[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < code_points.size() && combining_class(code_points[end]) != 0) ++end;
    std::stable_sort(code_points.begin() + static_cast<ptrdiff_t>(i), code_points.begin() + static_cast<ptrdiff_t>(end),
                     [&](auto a, auto b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
}

}  // namespace

// White_Space (PropList.txt, Unicode 15.0; unchanged since 6.3).
bool is_white_space(uint32_t c) {
  if (c < 0x80) return kAsciiClasses[c] == CharClass::kSpace;
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

CharClass char_class(uint32_t c) {
  if (c < 0x80) return kAsciiClasses[c];
  const utf8proc_category_t found = category(c);
  if (is_letter_category(found)) return CharClass::kLetter;
  if (is_number_category(found)) return CharClass::kNumber;
  return is_white_space(c) ? CharClass::kSpace : CharClass::kOther;
}

bool is_numeric(uint32_t c) { return is_number_category(category(c)); }

bool is_decimal_digit(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_mark(uint32_t c) { return c >= 0x80 && is_mark_category(category(c)); }

bool is_nonspacing_mark(uint32_t code_point) { return category(code_point) == UTF8PROC_CATEGORY_MN; }

bool is_control(uint32_t code_point) {
  const utf8proc_category_t c = category(code_point);
  return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO;
}

bool is_punctuation(uint32_t c) {
  const utf8proc_category_t found = category(c);
  if (found >= UTF8PROC_CATEGORY_PC && found <= UTF8PROC_CATEGORY_PO) return true;
  return c < 0x80 && found >= UTF8PROC_CATEGORY_SM && found <= UTF8PROC_CATEGORY_SO;
}

bool is_word_character(uint32_t c) {
  const utf8proc_category_t found = category(c);
  return is_letter_category(found) || is_mark_category(found) || found == UTF8PROC_CATEGORY_ND ||
         found == UTF8PROC_CATEGORY_NL || found == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D ||
         is_enclosed_letter(c);
}

size_t grapheme_end(std::string_view text, size_t begin) {
  constexpr uint32_t kFirstExtending = 0x300;  // below, nothing is joined but a line's end
  size_t end = begin;
  uint32_t previous = next_code_point(text, end);
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    size_t after = end;
    const uint32_t next = next_code_point(text, after);
    if (previous < kFirstExtending && next < kFirstExtending) {
      if (previous != '\r' || next != '\n') return end;
    } else if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous),
                                                static_cast<utf8proc_int32_t>(next), &state)) {
      return end;
    }
    previous = next;
    end = after;
  }
  return end;
}

std::string normalize(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  std::vector<utf8proc_int32_t> code_points;
  code_points.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    decompose_into(code_points, next_code_point(text, i), static_cast<utf8proc_option_t>(options));
  }
  order_marks(code_points);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) {
    const utf8proc_ssize_t length =
        utf8proc_normalize_utf32(code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()),
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    CHECK(length >= 0);
    code_points.resize(static_cast<size_t>(length));
  }
  std::string out;
  out.reserve(text.size());
  for (const utf8proc_int32_t c : code_points) append_utf8(out, static_cast<uint32_t>(c));
  return out;
}

std::string lowercase(std::string_view text) {
  constexpr uint32_t kCapitalIWithDot = 0x130;  // the one character whose lower case is two
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = next_code_point(text, i);
    if (c == kCapitalIWithDot) {
      out += "i\xCC\x87";
    } else {
      append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  }
  return out;
}

namespace {

constexpr uint32_t kCapitalSigma = 0x3A3;

// The properties Cased and Case_Ignorable, as far as utf8proc's tables tell them.
bool is_cased(uint32_t c) {
  const auto point = static_cast<utf8proc_int32_t>(c);
  return utf8proc_islower(point) != 0 || utf8proc_isupper(point) != 0 || category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_case_ignorable(uint32_t c) {
  // Word_Break MidLetter, MidNumLet and Single_Quote (WordBreakProperty.txt, Unicode 15.0).
  constexpr uint32_t kMiddle[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                  0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  const utf8proc_category_t found = category(c);
  return found == UTF8PROC_CATEGORY_MN || found == UTF8PROC_CATEGORY_ME || found == UTF8PROC_CATEGORY_CF ||
         found == UTF8PROC_CATEGORY_LM || found == UTF8PROC_CATEGORY_SK ||
         std::find(std::begin(kMiddle), std::end(kMiddle), c) != std::end(kMiddle);
}

}  // namespace

std::string lowercase_in_context(std::string_view text) {
  constexpr std::string_view kSigmaUtf8 = "\xCE\xA3";
  if (text.find(kSigmaUtf8) == std::string_view::npos) return lowercase(text);
  std::string out;
  bool cased_before = false;         // the last character that is not case-ignorable is cased
  size_t sigma = std::string::npos;  // in `out`: a sigma behind a cased letter, with nothing cased behind it so far
  const auto finish = [&] {
    if (sigma != std::string::npos) out.replace(sigma, kSigmaUtf8.size(), "\xCF\x82");
    sigma = std::string::npos;
  };
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    const uint32_t c = next_code_point(text, end);
    if (!is_case_ignorable(c)) {
      if (is_cased(c)) {
        sigma = std::string::npos;
      } else {
        finish();
      }
    }
    if (c == kCapitalSigma && cased_before) sigma = out.size();
    out += lowercase(text.substr(begin, end - begin));
    if (!is_case_ignorable(c)) cased_before = is_cased(c);
  }
  finish();
  return out;
}

}  // namespace transept
