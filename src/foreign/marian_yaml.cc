#include "foreign/marian_yaml.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/quoted.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace transept {
namespace {

struct Escape {
  char name;
  uint32_t code_point;
};
constexpr Escape kEscapes[] = {{'0', 0},   {'a', 7},     {'b', 8},    {'t', 9},    {'\t', 9},     {'n', 10},
                               {'v', 11},  {'f', 12},    {'r', 13},   {'e', 27},   {' ', ' '},    {'"', '"'},
                               {'/', '/'}, {'\\', '\\'}, {'N', 0x85}, {'_', 0xA0}, {'L', 0x2028}, {'P', 0x2029}};

std::optional<uint32_t> hex_number(std::string_view digits) {
  uint32_t value = 0;
  for (const char c : digits) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  return value;
}

// Reads one line, or a part of it, from left to right.
class LineReader final {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  std::string_view rest() const { return rest_; }
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Nothing but a comment is left.
  bool is_at_end() {
    const bool had_space = rest_.empty() || rest_.front() == ' ' || rest_.front() == '\t';
    skip_spaces();
    return rest_.empty() || (had_space && rest_.starts_with('#'));
  }

  // A quoted scalar, or a plain one that ends before one of `ends`: ": ", a ',' or ']', a comment.
  StatusOr<std::string> scalar(bool is_key, bool is_in_list) {
    if (take('"')) return double_quoted();
    if (take('\'')) return single_quoted();
    size_t size = 0;
    for (; size < rest_.size(); ++size) {
      const char c = rest_[size], next = size + 1 < rest_.size() ? rest_[size + 1] : ' ';
      if (c == ':' && (next == ' ' || next == '\t')) {
        if (is_key) break;
        if (!is_in_list && size + 1 < rest_.size()) return invalid_argument("a map in a map is not read");
      }
      if (is_in_list && (c == ',' || c == ']')) break;
      if (c == '#' && size > 0 && (rest_[size - 1] == ' ' || rest_[size - 1] == '\t')) break;
    }
    std::string_view text = rest_.substr(0, size);
    while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
    rest_.remove_prefix(text.size());
    constexpr std::string_view kReserved = "&*!|>%@`{";
    if (!is_key && !text.empty() && kReserved.find(text.front()) != std::string_view::npos) {
      return invalid_argument("a value that begins with ", in_quotes(text.substr(0, 1)), " is not read");
    }
    return std::string(text);
  }

  StatusOr<std::vector<std::string>> list() {
    std::vector<std::string> items;
    skip_spaces();
    while (!take(']')) {
      ASSIGN_OR_RETURN(items.emplace_back(), scalar(false, true));
      skip_spaces();
      const bool is_last = !take(',');
      skip_spaces();
      if (is_last && !rest_.starts_with(']')) return invalid_argument("a list does not end on its line");
    }
    return items;
  }

 private:
  StatusOr<std::string> single_quoted() {
    std::string text;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '\'' && !take('\'')) return text;
      text += c;
    }
    return invalid_argument("a quoted text does not end on its line");
  }
  StatusOr<std::string> double_quoted() {
    std::string text;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return text;
      if (c == '\\') {
        RETURN_IF_ERROR(escape(text));
      } else {
        text += c;
      }
    }
    return invalid_argument("a quoted text does not end on its line");
  }
  Status escape(std::string& text) {
    const char name = rest_.empty() ? '\n' : rest_.front();
    const size_t digits = name == 'x' ? 2 : name == 'u' ? 4 : name == 'U' ? 8 : 0;
    if (digits > 0 && rest_.size() > digits) {
      const std::optional<uint32_t> value = hex_number(rest_.substr(1, digits));
      if (value.has_value() && *value <= 0x10FFFF && (*value < 0xD800 || *value > 0xDFFF)) {
        append_utf8(text, *value);
        rest_.remove_prefix(1 + digits);
        return ok_status();
      }
    }
    const auto* const found = std::ranges::find(kEscapes, name, &Escape::name);
    if (found == std::end(kEscapes)) return invalid_argument("an escape that is none of YAML's");
    append_utf8(text, found->code_point);
    rest_.remove_prefix(1);
    return ok_status();
  }

  std::string_view rest_;
};

class MapParser final {
 public:
  Status line(std::string_view line) {
    LineReader reader(line);
    if (is_value_due_) {
      is_value_due_ = false;
      if (!reader.take(':')) return invalid_argument("a key behind \"?\" has no value");
      return value(reader);
    }
    const bool is_indented = line.front() == ' ' || line.front() == '\t';
    reader.skip_spaces();
    if (reader.rest().starts_with("- ") || reader.rest() == "-") return item(reader);
    if (is_indented) return indented(reader);
    const bool is_complex = reader.rest().starts_with("? ");
    if (is_complex) {
      reader.take('?');
      reader.skip_spaces();
    }
    ASSIGN_OR_RETURN(std::string key, reader.scalar(!is_complex, false));
    map_.emplace_back(std::move(key), YamlValue());
    if (is_complex) {
      is_value_due_ = true;
      return reader.is_at_end() ? ok_status() : invalid_argument("text behind a key");
    }
    reader.skip_spaces();
    if (!reader.take(':')) return invalid_argument("expected \"key: value\"");
    return value(reader);
  }
  StatusOr<YamlMap> finish() && {
    if (is_value_due_) return invalid_argument("a key behind \"?\" has no value");
    return std::move(map_);
  }

 private:
  Status value(LineReader& reader) {
    const bool has_space = reader.rest().empty() || reader.rest().front() == ' ' || reader.rest().front() == '\t';
    if (!has_space) return invalid_argument("expected \"key: value\"");
    is_open_ = reader.is_at_end();
    return is_open_ ? ok_status() : whole(reader);
  }
  Status whole(LineReader& reader) {
    YamlValue& into = map_.back().second;
    into.is_list = reader.take('[');
    if (into.is_list) {
      ASSIGN_OR_RETURN(into.list, reader.list());
    } else {
      ASSIGN_OR_RETURN(into.text, reader.scalar(false, false));
    }
    return reader.is_at_end() ? ok_status() : invalid_argument("text behind a value");
  }
  // A value that stands in the line below its key.
  Status indented(LineReader& reader) {
    if (!is_open_ || map_.back().second.is_list) return invalid_argument("a line of a text or a map that is not read");
    is_open_ = false;
    return whole(reader);
  }
  Status item(LineReader& reader) {
    if (!is_open_) return invalid_argument("an item of no list");
    reader.take('-');
    reader.skip_spaces();
    if (reader.rest().starts_with("[") || reader.rest().starts_with("- ")) {
      return invalid_argument("a list in a list is not read");
    }
    map_.back().second.is_list = true;
    ASSIGN_OR_RETURN(map_.back().second.list.emplace_back(), reader.scalar(false, false));
    return reader.is_at_end() ? ok_status() : invalid_argument("text behind an item");
  }

  YamlMap map_;
  bool is_value_due_ = false;  // of a key behind "? "
  bool is_open_ = false;       // the last key has no value yet, or a list that may go on
};

}  // namespace

StatusOr<YamlMap> parse_yaml_map(std::string_view text) {
  MapParser parser;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t begin = line.find_first_not_of(" \t");
    const bool is_mark = line == "---" || line == "..." || line.starts_with("%YAML");
    if (begin == std::string_view::npos || line[begin] == '#' || is_mark) continue;
    if (const Status status = parser.line(line); !status.ok()) {
      return invalid_argument("line ", number, ": ", error_message(status));
    }
  }
  return std::move(parser).finish();
}

const YamlValue* find_yaml(const YamlMap& map, std::string_view key) {
  const YamlValue* found = nullptr;
  for (const auto& [name, value] : map) {
    if (name == key) found = &value;
  }
  return found;
}

}  // namespace transept
