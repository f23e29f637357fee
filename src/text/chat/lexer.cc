#include "text/chat/lexer.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/quoted.h"
#include "base/utf8.h"
#include "text/chat/string_literal.h"
#include "text/chat/text_ops.h"

namespace transept::jinja {
namespace {

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer final {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  StatusOr<std::vector<Token>> run() {
    while (position_ < source_.size()) RETURN_IF_ERROR(read_data());
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return source_.substr(position_); }
  bool at(std::string_view word) const { return rest().starts_with(word); }
  void push(TokenKind kind, std::string_view text) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::string(text)});
  }
  void advance(size_t bytes) {
    const std::string_view passed = source_.substr(position_, bytes);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    position_ += passed.size();
    if (!passed.empty()) line_starting_ = passed.back() == '\n';
  }

  // Text up to the next tag, and the tag. `end` is where the tag begins, `sign` what stands behind its first two bytes.
  void push_data(size_t end, char sign, bool lstrip) {
    std::string_view text = source_.substr(position_, end - position_);
    const std::string_view whole = text;
    if (sign == '-') {
      text.remove_suffix(trailing_space(text));
    } else if (sign != '+' && lstrip) {
      const size_t newline = text.rfind('\n');
      const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
      const std::string_view line = text.substr(line_begin);
      if ((line_begin > 0 || line_starting_) && leading_space(line) == line.size()) text = text.substr(0, line_begin);
    }
    if (!text.empty()) push(TokenKind::kData, text);
    advance(whole.size());
  }

  static char sign_of(std::string_view behind) {
    return !behind.empty() && (behind[0] == '-' || behind[0] == '+') ? behind[0] : '\0';
  }

  // Past "-%}" and the space behind it, "+%}", or "%}" and one newline; 0: not there. `trims`: the newline goes.
  static size_t end_of_tag(std::string_view text, std::string_view close, bool plus, bool trims) {
    if (text.starts_with('-') && text.substr(1).starts_with(close)) {
      const size_t end = 1 + close.size();
      return end + leading_space(text.substr(end));
    }
    if (plus && text.starts_with('+') && text.substr(1).starts_with(close)) return 1 + close.size();
    if (!text.starts_with(close)) return 0;
    return close.size() + (trims && text.substr(close.size()).starts_with('\n') ? 1 : 0);
  }

  Status read_data() {
    size_t tag = position_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        push(TokenKind::kData, rest());
        advance(rest().size());
        return ok_status();
      }
      const char next = source_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
      ++tag;
    }
    const char type = source_[tag + 1];
    const char sign = sign_of(source_.substr(tag + 2));
    push_data(tag, sign, /*lstrip=*/type != '{');
    if (type == '#') return skip_comment(sign);
    if (const size_t raw = raw_begin(rest()); raw > 0) {
      advance(raw);
      return read_raw();
    }
    push(type == '{' ? TokenKind::kOutputBegin : TokenKind::kBlockBegin, "");
    advance(sign == '\0' ? 2 : 3);
    return read_tag(/*is_block=*/type == '%');
  }

  // Jinja misses the end of a comment or raw block only where something stands in it.
  bool ends_here() const { return position_ == source_.size(); }

  Status skip_comment(char sign) {
    const int begin_line = line_;
    advance(sign == '\0' ? 2 : 3);
    for (size_t i = 0; i < rest().size(); ++i) {
      if (const size_t end = end_of_tag(rest().substr(i), "#}", /*plus=*/true, /*trims=*/true); end > 0) {
        advance(i + end);
        return ok_status();
      }
    }
    return ends_here() ? ok_status() : line_error(begin_line, "the comment has no end");
  }

  // Past "{% raw %}", if it is there.
  static size_t raw_begin(std::string_view text) { return word_tag(text, "raw", /*plus=*/false, /*trims=*/false); }

  static size_t word_tag(std::string_view text, std::string_view word, bool plus, bool trims) {
    if (!text.starts_with("{%")) return 0;
    size_t i = sign_of(text.substr(2)) == '\0' ? 2 : 3;
    i += leading_space(text.substr(i));
    if (!text.substr(i).starts_with(word)) return 0;
    i += word.size();
    i += leading_space(text.substr(i));
    const size_t end = end_of_tag(text.substr(i), "%}", plus, trims);
    return end == 0 ? 0 : i + end;
  }

  Status read_raw() {
    const int begin_line = line_;
    for (size_t i = source_.find("{%", position_); i != std::string_view::npos; i = source_.find("{%", i + 1)) {
      const size_t end = word_tag(source_.substr(i), "endraw", /*plus=*/true, /*trims=*/true);
      if (end == 0) continue;
      push_data(i, sign_of(source_.substr(i + 2)), /*lstrip=*/true);
      advance(end);
      return ok_status();
    }
    return ends_here() ? ok_status() : line_error(begin_line, "the raw block has no end");
  }

  Status read_tag(bool is_block) {
    const std::string_view close = is_block ? "%}" : "}}";
    brackets_.clear();
    while (position_ < source_.size()) {
      if (brackets_.empty()) {
        if (const size_t end = end_of_tag(rest(), close, /*plus=*/is_block, /*trims=*/is_block); end > 0) {
          push(is_block ? TokenKind::kBlockEnd : TokenKind::kOutputEnd, "");
          advance(end);
          return ok_status();
        }
      }
      if (const size_t space = leading_space(rest()); space > 0) {
        advance(space);
      } else {
        RETURN_IF_ERROR(read_token());
      }
    }
    return ok_status();  // the parser says what is missing
  }

  Status read_token() {
    const char c = source_[position_];
    if (is_digit(c)) return read_number();
    if (is_name_char(c)) {
      size_t length = 1;
      while (length < rest().size() && is_name_char(rest()[length])) ++length;
      if (is_beyond_ascii(rest().substr(length))) return beyond_ascii();
      push(TokenKind::kName, rest().substr(0, length));
      advance(length);
      return ok_status();
    }
    if (c == '\'' || c == '"') return read_string(c);
    for (const std::string_view op : {"**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                      "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"}) {
      if (at(op)) return read_operator(op);
    }
    if (is_beyond_ascii(rest())) return beyond_ascii();
    return line_error(line_, "unexpected character ", in_quotes(rest().substr(0, 1)));
  }

  static bool is_beyond_ascii(std::string_view text) {
    return !text.empty() && static_cast<uint8_t>(text[0]) >= 0x80 && leading_space(text) == 0;
  }
  Status beyond_ascii() const { return line_unsupported(line_, "a character beyond ASCII outside of strings"); }

  Status read_operator(std::string_view op) {
    if (op == "(" || op == "[" || op == "{") {
      brackets_ += op == "(" ? ')' : op == "[" ? ']' : '}';
    } else if (op == ")" || op == "]" || op == "}") {
      if (brackets_.empty() || brackets_.back() != op[0]) return line_error(line_, "unexpected '", op, "'");
      brackets_.pop_back();
    }
    push(TokenKind::kOperator, op);
    advance(op.size());
    return ok_status();
  }

  Status read_string(char quote) {
    size_t i = 1;
    while (i < rest().size() && rest()[i] != quote) i += rest()[i] == '\\' ? 2 : 1;
    if (i >= rest().size()) return line_error(line_, "the string has no end");
    StatusOr<std::string> value = unescape(rest().substr(1, i - 1));
    if (!value.ok()) return with_prefix(value.status(), str_cat("line ", line_));
    push(TokenKind::kString, *value);
    advance(i + 1);
    return ok_status();
  }

  // The length of digits with single underscores between them, from `from` on.
  size_t digits(size_t from) const {
    size_t i = from;
    while (i < rest().size() && (is_digit(rest()[i]) || (rest()[i] == '_' && i > from && i + 1 < rest().size() &&
                                                         is_digit(rest()[i + 1]) && rest()[i - 1] != '_'))) {
      ++i;
    }
    return i - from;
  }

  Status read_number() {
    const bool behind_dot = position_ > 0 && source_[position_ - 1] == '.';
    const size_t whole = digits(0);
    size_t length = whole;
    bool is_float = false;
    if (!behind_dot) {
      if (length < rest().size() && rest()[length] == '.' && digits(length + 1) > 0) {
        length += 1 + digits(length + 1);
        is_float = true;
      }
      if (length < rest().size() && (rest()[length] == 'e' || rest()[length] == 'E')) {
        const bool signed_exponent =
            length + 1 < rest().size() && (rest()[length + 1] == '-' || rest()[length + 1] == '+');
        const size_t exponent = length + (signed_exponent ? 2 : 1);
        if (digits(exponent) > 0) {
          length = exponent + digits(exponent);
          is_float = true;
        }
      }
    }
    return is_float ? push_float(length) : push_integer(whole);
  }

  Status push_float(size_t length) {
    std::string plain(rest().substr(0, length));
    std::erase(plain, '_');
    push(TokenKind::kFloat, plain);
    const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), tokens_.back().number);
    if (error != std::errc()) return line_unsupported(line_, "the number ", plain);
    advance(length);
    return ok_status();
  }

  Status push_integer(size_t whole) {
    int base = 10;
    size_t length = whole;
    size_t begin = 0;
    if (rest()[0] == '0') {
      const char type = rest().size() > 1 ? ascii_lower(rest()[1]) : '\0';
      const int wanted = type == 'x' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 0;
      const size_t found = wanted == 0 ? 0 : based_digits(wanted);
      if (found > 0) {
        base = wanted;
        begin = 2;
        length = 2 + found;
      } else {  // zeros alone
        length = 1;
        while (length < whole && (rest()[length] == '0' || (rest()[length] == '_' && rest()[length + 1] == '0'))) {
          ++length;
        }
      }
    }
    std::string plain(rest().substr(begin, length - begin));
    std::erase(plain, '_');
    push(TokenKind::kInteger, plain);
    const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), tokens_.back().integer, base);
    if (error != std::errc()) return line_unsupported(line_, "an integer beyond 64 bits");
    advance(length);
    return ok_status();
  }

  // The length of (_?DIGIT)+ behind "0x".
  size_t based_digits(int base) const {
    const auto is_based = [base](char c) {
      const char lower = ascii_lower(c);
      const int value = is_digit(c) ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
      return value < base;
    };
    size_t i = 2;
    while (i < rest().size()) {
      const size_t digit = rest()[i] == '_' ? i + 1 : i;
      if (digit >= rest().size() || !is_based(rest()[digit])) break;
      i = digit + 1;
    }
    return i - 2;
  }

  std::string_view source_;
  size_t position_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::string brackets_;  // the closing brackets that are awaited
  std::vector<Token> tokens_;
};

}  // namespace

StatusOr<std::vector<Token>> tokenize(std::string_view source) {
  if (!is_valid_utf8(source)) return invalid_argument("the template is not valid UTF-8");
  const std::string normalized = normalize_newlines(source);
  return Lexer(normalized).run();
}

}  // namespace transept::jinja
