// Oniguruma's Ruby syntax in PCRE2's: where both write the same thing differently, or write one thing and mean two.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "text/unicode/regex.h"

namespace transept {
namespace {

// White_Space; PCRE2's \s has U+180E besides.
constexpr std::string_view kSpaces =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
// PCRE2's \w knows of letters, numbers and '_' only. Outside of classes Oniguruma's takes the numbers of Latin-1 too.
constexpr std::string_view kWords = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr std::string_view kWordsOutsideClass =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";
constexpr std::string_view kHexDigits = "0-9a-fA-F";
// Escapes that mean the same in both. (Any character that is no letter or digit stands for itself.)
constexpr std::string_view kSameEscapes = "dDbBAzZGRXnrtfvaexkg0123456789";
constexpr std::string_view kSameEscapesInClass = "dDnrtfvaex01234567";
// [:name:] by properties; PCRE2 means something narrower by most of them.
constexpr std::pair<std::string_view, std::string_view> kPosixClasses[] = {{"alnum", "\\p{Alphabetic}\\p{Nd}"},
                                                                           {"alpha", "\\p{Alphabetic}"},
                                                                           {"blank", "\\p{Zs}\\t"},
                                                                           {"cntrl", "\\p{Cc}"},
                                                                           {"digit", "\\p{Nd}"},
                                                                           {"lower", "\\p{Lowercase}"},
                                                                           {"punct", "\\p{P}\\p{S}"},
                                                                           {"space", kSpaces},
                                                                           {"upper", "\\p{Uppercase}"},
                                                                           {"word", kWords},
                                                                           {"xdigit", kHexDigits}};

// Whether PCRE2 knows a script of this name.
bool is_script(std::string_view name) {
  const std::string pattern = str_cat("\\p{sc:", name, "}");
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF, &error, &offset, nullptr);
  const bool known = code != nullptr;
  pcre2_code_free(code);
  return known;
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  StatusOr<std::string> run() {
    while (!at_end()) RETURN_IF_ERROR(in_class_ ? class_item() : item());
    if (in_class_) return invalid_argument("the character class is not closed");
    return std::move(out_);
  }

 private:
  bool at_end() const { return position_ >= pattern_.size(); }
  bool looking_at(std::string_view text) const { return pattern_.substr(position_).starts_with(text); }
  void copy(size_t count) {
    out_.append(pattern_.substr(position_, count));
    position_ += std::min(count, pattern_.size() - position_);
  }

  Status item() {
    if (looking_at("\\")) return escape();
    if (looking_at("(*") || looking_at("(?C")) {
      return unimplemented("callouts and verbs in regular expressions are not supported");
    }
    if (looking_at("(?")) {
      group_flags();
    } else if (looking_at("[")) {
      copy(looking_at("[^") ? 2 : 1);
      if (looking_at("]")) copy(1);  // the first one stands for itself
      in_class_ = true;
    } else if (looking_at("{")) {
      return interval();
    } else {
      copy(1);
    }
    return ok_status();
  }

  // (?m: is Ruby's word for "dot matches newline", which PCRE2 calls (?s:.
  void group_flags() {
    copy(2);
    size_t end = position_;
    while (end < pattern_.size() && (pattern_[end] == '-' || std::isalpha(static_cast<unsigned char>(pattern_[end])))) {
      ++end;
    }
    const bool are_flags = end < pattern_.size() && (pattern_[end] == ':' || pattern_[end] == ')');
    for (; are_flags && position_ < end; ++position_) out_ += pattern_[position_] == 'm' ? 's' : pattern_[position_];
  }

  // {,n} counts from 0, and {n,m}+ repeats an interval where PCRE2 would make it possessive.
  Status interval() {
    size_t end = position_ + 1;
    while (end < pattern_.size() && (pattern_[end] == ',' || std::isdigit(static_cast<unsigned char>(pattern_[end])))) {
      ++end;
    }
    const std::string_view body = pattern_.substr(position_ + 1, end - position_ - 1);
    if (end >= pattern_.size() || pattern_[end] != '}' || body.empty() || body == ",") {
      copy(1);
      return ok_status();
    }
    if (pattern_.substr(end + 1).starts_with('+')) {
      return unimplemented("a repeated interval ({n,m}+) in a regular expression is not supported");
    }
    out_ += body.front() == ',' ? "{0" : "{";
    out_.append(body);
    out_ += '}';
    position_ = end + 1;
    return ok_status();
  }

  Status escape() {
    const std::optional<char> letter = escaped_letter();
    if (!letter.has_value()) return literal_escape();
    switch (*letter) {
      case 's': return replace(str_cat("[", kSpaces, "]"));
      case 'S': return replace(str_cat("[^", kSpaces, "]"));
      case 'w': return replace(str_cat("[", kWordsOutsideClass, "]"));
      case 'W': return replace(str_cat("[^", kWordsOutsideClass, "]"));
      case 'h': return replace(str_cat("[", kHexDigits, "]"));
      case 'H': return replace(str_cat("[^", kHexDigits, "]"));
      case 'u': return unicode_escape();
      case 'p':
      case 'P': return property();
      default: break;
    }
    if (kSameEscapes.find(*letter) == std::string_view::npos) return unknown_escape(*letter);
    copy(2);
    return ok_status();
  }

  Status class_item() {
    if (looking_at("\\")) return class_escape();
    if (looking_at("[:")) return posix_class();
    if (looking_at("[") || looking_at("&&")) {
      return unimplemented("character classes inside character classes are not supported");
    }
    if (looking_at("]")) in_class_ = false;
    copy(1);
    return ok_status();
  }

  Status posix_class() {
    for (const auto& [name, members] : kPosixClasses) {
      const std::string written = str_cat("[:", name, ":]");
      if (!looking_at(written)) continue;
      out_.append(members);
      position_ += written.size();
      return ok_status();
    }
    return unimplemented("this POSIX bracket in a regular expression is not supported");
  }

  // \p{Han} is the script; PCRE2 takes a bare name for the script's extensions too.
  Status property() {
    const size_t end = pattern_.find('}', position_);
    if (!pattern_.substr(position_ + 2).starts_with('{') || end == std::string_view::npos) {
      return invalid_argument("\\p in a regular expression needs a property in braces");
    }
    std::string_view name = pattern_.substr(position_ + 3, end - position_ - 3);
    bool negated = pattern_[position_ + 1] == 'P';
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    out_ += str_cat(negated ? "\\P{" : "\\p{", is_script(name) ? "sc:" : "", name, "}");
    position_ = end + 1;
    return ok_status();
  }

  Status class_escape() {
    const std::optional<char> letter = escaped_letter();
    if (!letter.has_value()) return literal_escape();
    switch (*letter) {
      case 's': return replace(kSpaces);
      case 'S': return replace("\\S\\x{180e}");  // no white space, though PCRE2 takes it for one
      case 'w': return replace(kWords);
      case 'h': return replace(kHexDigits);
      case 'b': return replace("\\x{8}");
      case 'u': return unicode_escape();
      case 'p':
      case 'P': return property();
      default: break;
    }
    if (kSameEscapesInClass.find(*letter) == std::string_view::npos) return unknown_escape(*letter);
    copy(2);
    return ok_status();
  }

  // The letter or digit behind a backslash, if there is one.
  std::optional<char> escaped_letter() const {
    if (position_ + 1 >= pattern_.size()) return std::nullopt;
    const char c = pattern_[position_ + 1];
    if (!std::isalnum(static_cast<unsigned char>(c))) return std::nullopt;
    return c;
  }

  Status literal_escape() {
    if (position_ + 1 >= pattern_.size()) return invalid_argument("a backslash ends the regular expression");
    if (static_cast<unsigned char>(pattern_[position_ + 1]) >= 0x80) {
      ++position_;  // PCRE2 wants no backslash before a character beyond ASCII
    } else {
      copy(2);
    }
    return ok_status();
  }

  Status unicode_escape() {
    const std::string_view digits = pattern_.substr(position_ + 2, 4);
    const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    if (digits.size() < 4 || !std::all_of(digits.begin(), digits.end(), is_hex)) {
      return invalid_argument("\\u in a regular expression needs four hexadecimal digits");
    }
    out_ += str_cat("\\x{", digits, "}");
    position_ += 6;
    return ok_status();
  }

  static Status unknown_escape(char letter) {
    return unimplemented("\\", letter, " in this place of a regular expression is not supported");
  }

  Status replace(std::string_view by) {
    out_.append(by);
    position_ += 2;
    return ok_status();
  }

  std::string_view pattern_;
  size_t position_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

StatusOr<std::string> translate_oniguruma(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace transept
