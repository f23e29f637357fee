#include "text/chat/json_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "text/chat/sorting.h"
#include "text/chat/value_ops.h"
#include "text/unicode/unicode.h"

namespace transept::jinja {
namespace {

std::string json_double(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return repr_of_double(value);
}

void append_escape(std::string& out, uint32_t unit) {
  std::array<char, 8> escape{};
  std::snprintf(escape.data(), escape.size(), "\\u%04x", unit & 0xFFFF);
  out += escape.data();
}

std::string json_string(std::string_view text, bool ensure_ascii) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const uint32_t c = next_code_point(text, i);
    constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    if (const size_t escape = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
        escape != std::string_view::npos) {
      out += '\\';
      out += kLetters[escape];
    } else if (c < 0x20 || (ensure_ascii && c >= 0x7F && c < 0x10000)) {
      append_escape(out, c);
    } else if (ensure_ascii && c >= 0x10000) {
      append_escape(out, 0xD800 + ((c - 0x10000) >> 10));
      append_escape(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
    } else {
      out += text.substr(begin, i - begin);
    }
  }
  out += '"';
  return out;
}

class Writer final {
 public:
  Writer(TextBuilder& out, const JsonTextOptions& options) : out_(out), options_(options) {}

  Status write(const Value& value, int depth) {
    if (depth > kMaxValueDepth) return invalid_argument("a value has more than ", kMaxValueDepth, " levels");
    switch (value.kind) {
      case Kind::kNone: return out_.append("null");
      case Kind::kBool: return out_.append(value.integer != 0 ? "true" : "false");
      case Kind::kInt: return out_.append(str_cat(value.integer));
      case Kind::kBigInt: return out_.append(value.text->view);
      case Kind::kFloat: return out_.append(json_double(value.number));
      case Kind::kText: return out_.append(json_string(value.text->view, options_.ensure_ascii));
      case Kind::kList:
      case Kind::kTuple: return write_list(*value.list, depth);
      case Kind::kDict: return write_dict(*value.dict, depth);
      default: return invalid_argument("a value of type ", type_name(value), " is not JSON serializable");
    }
  }

 private:
  Status new_line(int depth) {
    if (!options_.indent.has_value()) return ok_status();
    RETURN_IF_ERROR(out_.append("\n"));
    for (int i = 0; i < depth; ++i) RETURN_IF_ERROR(out_.append(*options_.indent));
    return ok_status();
  }

  Status write_list(const List& list, int depth) {
    if (list.items.empty()) return out_.append("[]");
    RETURN_IF_ERROR(out_.append("["));
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) RETURN_IF_ERROR(out_.append(options_.item_separator));
      RETURN_IF_ERROR(new_line(depth + 1));
      RETURN_IF_ERROR(write(list.items[i], depth + 1));
    }
    RETURN_IF_ERROR(new_line(depth));
    return out_.append("]");
  }

  Status write_dict(const Dict& dict, int depth) {
    if (dict.items.empty()) return out_.append("{}");
    std::vector<std::pair<Value, Value>> items = dict.items;
    if (options_.sort_keys) RETURN_IF_ERROR(sort_by_key(out_.heap(), items));
    RETURN_IF_ERROR(out_.append("{"));
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) RETURN_IF_ERROR(out_.append(options_.item_separator));
      RETURN_IF_ERROR(new_line(depth + 1));
      ASSIGN_OR_RETURN(const std::string key, key_text(items[i].first));
      RETURN_IF_ERROR(out_.append(json_string(key, options_.ensure_ascii)));
      RETURN_IF_ERROR(out_.append(options_.key_separator));
      RETURN_IF_ERROR(write(items[i].second, depth + 1));
    }
    RETURN_IF_ERROR(new_line(depth));
    return out_.append("}");
  }

  static StatusOr<std::string> key_text(const Value& key) {
    switch (key.kind) {
      case Kind::kNone: return std::string("null");
      case Kind::kBool: return std::string(key.integer != 0 ? "true" : "false");
      case Kind::kInt: return str_cat(key.integer);
      case Kind::kFloat: return json_double(key.number);
      case Kind::kBigInt:
      case Kind::kText: return std::string(key.text->view);
      default: return invalid_argument("keys must be str, int, float, bool or None, not ", type_name(key));
    }
  }

  static Status sort_by_key(Heap& heap, std::vector<std::pair<Value, Value>>& items) {
    std::vector<Value> keys;
    keys.reserve(items.size());
    for (const auto& [key, value] : items) keys.push_back(key);
    ASSIGN_OR_RETURN(const std::vector<size_t> order, sorted_order(heap, keys, /*reverse=*/false));
    std::vector<std::pair<Value, Value>> sorted;
    sorted.reserve(items.size());
    for (const size_t i : order) sorted.push_back(items[i]);
    items = std::move(sorted);
    return ok_status();
  }

  TextBuilder& out_;
  const JsonTextOptions& options_;
};

}  // namespace

Status append_json(TextBuilder& out, const Value& value, const JsonTextOptions& options) {
  return Writer(out, options).write(value, 0);
}

}  // namespace transept::jinja
