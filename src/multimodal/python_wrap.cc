#include "multimodal/python_wrap.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "multimodal/python_strip.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

using Characters = std::span<const char32_t>;

constexpr size_t kTabSize = 8;

bool is_wrap_space(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// \w of Python's re: str.isalnum() and the underscore.
bool is_word(char32_t c) {
  const CharClass of = char_class(c);
  return of == CharClass::kLetter || of == CharClass::kNumber || c == '_';
}

// [^\d\W]: what is_word() takes, but decimal digits.
bool is_letter(char32_t c) { return is_word(c) && !is_decimal_digit(c); }

// Behind what a dash ends a word.
bool is_word_punctuation(char32_t c) {
  return is_word(c) || std::u32string_view(U"!\"'&.,?").find(c) != std::u32string_view::npos;
}

// expandtabs(8), and white space to spaces.
std::u32string with_spaces(std::string_view text) {
  std::u32string out;
  size_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = read_utf8(text.substr(at));
    at += static_cast<size_t>(step.num_bytes);
    const auto c = static_cast<char32_t>(step.code_point);
    if (c == '\t') {
      const size_t count = kTabSize - column % kTabSize;
      out.append(count, ' ');
      column += count;
      continue;
    }
    column = c == '\n' || c == '\r' ? 0 : column + 1;
    out += is_wrap_space(c) ? U' ' : c;
  }
  return out;
}

// Pieces between which lines may break: TextWrapper.wordsep_re.
class Splitter final {
 public:
  explicit Splitter(const std::u32string& text) : text_(text) {}

  std::vector<Characters> split() const {
    std::vector<Characters> pieces;
    for (size_t at = 0; at < text_.size();) {
      const size_t end = end_of_piece(at);
      pieces.push_back(Characters(text_).subspan(at, end - at));
      at = end;
    }
    return pieces;
  }

 private:
  bool has(size_t at, bool (*is_it)(char32_t)) const { return at < text_.size() && is_it(text_[at]); }
  bool is_hyphen(size_t at) const { return at < text_.size() && text_[at] == '-'; }

  // Behind two hyphens or more from `at` on, if a word's character follows; else 0.
  size_t end_of_dash(size_t at) const {
    size_t end = at;
    while (is_hyphen(end)) ++end;
    return end >= at + 2 && has(end, is_word) ? end : 0;
  }

  bool follows_word(size_t at) const { return at > 0 && is_word_punctuation(text_[at - 1]); }

  // The hyphen at `at` within a word: two letters before it, or "a-b", and two letters behind it, or "a-b".
  bool is_in_word(size_t at) const {
    const auto is_letter_at = [&](size_t place) { return has(place, is_letter); };
    if (!is_hyphen(at) || at < 2 || !is_letter_at(at - 1)) return false;
    const bool begins = is_letter_at(at - 2) || (is_hyphen(at - 2) && at >= 3 && is_letter_at(at - 3));
    return begins && is_letter_at(at + 1) && (is_letter_at(at + 2) || (is_hyphen(at + 2) && is_letter_at(at + 3)));
  }

  size_t end_of_piece(size_t begin) const {
    size_t end = begin;
    if (has(begin, is_wrap_space)) {
      while (has(end, is_wrap_space)) ++end;
      return end;
    }
    if (follows_word(begin)) {
      if (const size_t dash = end_of_dash(begin); dash != 0) return dash;
    }
    for (end = begin + 1;; ++end) {
      if (is_in_word(end)) return end + 1;
      if (end == text_.size() || is_wrap_space(text_[end])) return end;
      if (is_hyphen(end) && follows_word(end) && end_of_dash(end) != 0) return end;
    }
  }

  const std::u32string& text_;
};

std::string utf8_of(Characters characters) {
  std::string out;
  for (const char32_t c : characters) append_utf8(out, c);
  return out;
}

bool is_blank(Characters piece) { return std::ranges::all_of(piece, is_python_space); }

// How much of a word that is longer than a line goes into the `room` of one: up to its last hyphen, if there is another
// character before.
size_t part_of_word(Characters word, size_t room) {
  if (word.size() <= room) return room;
  const Characters head = word.first(room);
  const auto hyphen = std::ranges::find(head.rbegin(), head.rend(), U'-');
  if (hyphen == head.rend()) return room;
  const auto before = static_cast<size_t>(head.rend() - hyphen) - 1;
  const bool is_word = std::ranges::any_of(head.first(before), [](char32_t c) { return c != '-'; });
  return is_word ? before + 1 : room;
}

}  // namespace

std::vector<std::string> python_wrap(std::string_view text, size_t width) {
  const std::u32string spaced = with_spaces(text);
  const std::vector<Characters> pieces = Splitter(spaced).split();
  std::vector<std::string> lines;
  size_t next = 0;
  Characters rest = pieces.empty() ? Characters() : pieces.front();  // of piece `next`
  const auto advance = [&] { rest = ++next < pieces.size() ? pieces[next] : Characters(); };
  while (next < pieces.size()) {
    std::vector<Characters> line;
    size_t length = 0;
    if (!lines.empty() && is_blank(rest)) advance();
    while (next < pieces.size() && length + rest.size() <= width) {
      line.push_back(rest);
      length += rest.size();
      advance();
    }
    if (next < pieces.size() && rest.size() > width) {
      const size_t part = std::min(part_of_word(rest, width - length), rest.size());
      line.push_back(rest.first(part));
      rest = rest.subspan(part);
    }
    if (!line.empty() && is_blank(line.back())) line.pop_back();
    if (line.empty()) continue;
    std::string joined;
    for (const Characters piece : line) joined += utf8_of(piece);
    lines.push_back(std::move(joined));
  }
  return lines;
}

}  // namespace transept
