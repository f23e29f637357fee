#include "weights/json_scanner.h"

#include <limits>

#include "base/utf8.h"

namespace transept {

Status JsonScanner::error(std::string_view reason) const {
  return invalid_argument("not valid JSON at byte ", at_, ": ", reason);
}

void JsonScanner::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
    ++at_;
  }
}

bool JsonScanner::next_is(char c) {
  skip_space();
  return at_ < text_.size() && text_[at_] == c;
}

bool JsonScanner::take(char c) {
  if (!next_is(c)) return false;
  ++at_;
  return true;
}

Status JsonScanner::expect(char c) { return take(c) ? ok_status() : error(str_cat("expected '", c, "'")); }

Status JsonScanner::end() {
  skip_space();
  return at_ == text_.size() ? ok_status() : error("something follows the value");
}

StatusOr<uint32_t> JsonScanner::hex4() {
  if (text_.size() - at_ < 4) return error("an escape is cut off");
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = text_[at_++];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return error("an escape is not hexadecimal");
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  return value;
}

Status JsonScanner::escape(std::string& out) {
  if (at_ >= text_.size()) return error("a string does not end");
  constexpr std::string_view kFrom = "\"\\/bfnrt";
  constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  const char c = text_[at_++];
  if (const size_t plain = kFrom.find(c); plain != std::string_view::npos) {
    out += kTo[plain];
    return ok_status();
  }
  if (c != 'u') return error("no such escape");
  ASSIGN_OR_RETURN(uint32_t code, hex4());
  if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
    at_ += 2;
    ASSIGN_OR_RETURN(const uint32_t low, hex4());
    if (low < 0xDC00 || low > 0xDFFF) return error("a surrogate stands alone");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (code >= 0xD800 && code <= 0xDFFF) {
    return error("a surrogate stands alone");
  }
  append_utf8(out, code);
  return ok_status();
}

StatusOr<std::string> JsonScanner::string() {
  if (!take('"')) return error("expected a string");
  std::string out;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') {
      if (!is_valid_utf8(out)) return error("a string is not UTF-8");
      return out;
    }
    if (static_cast<unsigned char>(c) < 0x20) return error("a control character in a string");
    if (c == '\\') {
      RETURN_IF_ERROR(escape(out));
    } else {
      out += c;
    }
  }
  return error("a string does not end");
}

StatusOr<int64_t> JsonScanner::integer() {
  skip_space();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const size_t begin = at_;
  int64_t value = 0;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
    const int digit = text_[at_] - '0';
    if (value > (kMax - digit) / 10) return error("a number is too large");
    value = value * 10 + digit;
    ++at_;
  }
  if (at_ == begin) return error("expected a whole number from 0");
  if (text_[begin] == '0' && at_ - begin > 1) return error("a number begins with 0");
  return value;
}

Status JsonScanner::members(FunctionRef<Status(std::string key)> read_value) {
  RETURN_IF_ERROR(expect('{'));
  if (take('}')) return ok_status();
  do {
    ASSIGN_OR_RETURN(std::string key, string());
    RETURN_IF_ERROR(expect(':'));
    RETURN_IF_ERROR(read_value(std::move(key)));
  } while (take(','));
  return expect('}');
}

Status JsonScanner::skip_word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return error("expected a value");
  at_ += word.size();
  return ok_status();
}

Status JsonScanner::skip_number() {
  const size_t begin = at_;
  while (at_ < text_.size() && std::string_view("+-.eE0123456789").find(text_[at_]) != std::string_view::npos) ++at_;
  return at_ > begin ? ok_status() : error("expected a value");
}

Status JsonScanner::skip_list(int depth) {
  RETURN_IF_ERROR(expect('['));
  if (take(']')) return ok_status();
  do {
    RETURN_IF_ERROR(skip(depth));
  } while (take(','));
  return expect(']');
}

Status JsonScanner::skip(int depth) {
  if (depth > kMaxDepth) return error(str_cat("nested deeper than ", kMaxDepth, " levels"));
  skip_space();
  if (at_ >= text_.size()) return error("expected a value");
  switch (text_[at_]) {
    case '{': return members([this, depth](const std::string&) { return skip(depth + 1); });
    case '[': return skip_list(depth + 1);
    case '"': return string().status();
    case 't': return skip_word("true");
    case 'f': return skip_word("false");
    case 'n': return skip_word("null");
    default: return skip_number();
  }
}

}  // namespace transept
