#include "text/chat/text_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "text/chat/value_ops.h"

namespace transept::jinja {
namespace {

constexpr int kMaxWidth = 1000;

struct Conversion {
  bool zeros = false, left = false;
  int width = 0, precision = -1;
  char type = 's';
};

StatusOr<int> read_number(std::string_view format, size_t& i) {
  int number = 0;
  for (; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i) {
    number = number * 10 + (format[i] - '0');
    if (number > kMaxWidth) return unimplemented("a width of more than ", kMaxWidth, " is not supported");
  }
  return number;
}

StatusOr<Conversion> read_conversion(std::string_view format, size_t& i) {
  Conversion conversion;
  for (; i < format.size() && (format[i] == '0' || format[i] == '-'); ++i) {
    (format[i] == '0' ? conversion.zeros : conversion.left) = true;
  }
  ASSIGN_OR_RETURN(conversion.width, read_number(format, i));
  if (i < format.size() && format[i] == '.') {
    ++i;
    ASSIGN_OR_RETURN(conversion.precision, read_number(format, i));
  }
  if (i == format.size()) return invalid_argument("incomplete format");
  conversion.type = format[i++];
  return conversion;
}

template <typename Number>
std::string print(const char* pattern, int precision, Number number) {
  std::array<char, 1400> text{};
  std::snprintf(text.data(), text.size(), pattern, precision, number);
  return text.data();
}

StatusOr<std::string> convert(Heap& heap, const Conversion& conversion, const Value& value) {
  switch (conversion.type) {
    case 's':
    case 'r': {
      if (conversion.precision >= 0) break;
      TextBuilder out(heap);
      RETURN_IF_ERROR(conversion.type == 's' ? append_str(out, value) : append_repr(out, value));
      return out.take();
    }
    case 'd':
    case 'i':
      if (conversion.precision >= 0) break;
      if (value.is_integral()) return str_cat(value.integer);
      if (value.is(Kind::kFloat) && std::abs(value.number) < 0x1p63) {
        return str_cat(static_cast<int64_t>(value.number));
      }
      return value.is(Kind::kFloat) || value.is(Kind::kBigInt)
                 ? StatusOr<std::string>(unimplemented("%d beyond 64 bits is not supported"))
                 : StatusOr<std::string>(invalid_argument("%d needs a number, not ", type_name(value)));
    case 'x':
      if (!value.is_integral()) return invalid_argument("%x needs an integer, not ", type_name(value));
      if (conversion.precision >= 0 || value.integer < 0) break;
      return print("%.*llx", 1, static_cast<unsigned long long>(value.integer));
    case 'f': {
      if (!value.is_integral() && !value.is(Kind::kFloat)) {
        return invalid_argument("%f needs a number, not ", type_name(value));
      }
      const double number = value.is(Kind::kFloat) ? value.number : static_cast<double>(value.integer);
      if (!std::isfinite(number)) break;
      return print("%.*f", conversion.precision < 0 ? 6 : conversion.precision, number);
    }
    default: break;
  }
  return unimplemented("the format %", std::string_view(&conversion.type, 1), " of such a value is not supported");
}

std::string padded(const Conversion& conversion, std::string text, size_t num_chars) {
  if (num_chars >= static_cast<size_t>(conversion.width)) return text;
  const size_t missing = static_cast<size_t>(conversion.width) - num_chars;
  if (conversion.left) return text + std::string(missing, ' ');
  const bool is_number = conversion.type != 's' && conversion.type != 'r';
  const size_t sign = is_number && conversion.zeros && text.starts_with('-') ? 1 : 0;
  text.insert(sign, missing, is_number && conversion.zeros ? '0' : ' ');
  return text;
}

}  // namespace

StatusOr<Value> format_percent(Heap& heap, const Text& format, const Value& values) {
  const bool is_tuple = values.is(Kind::kTuple);
  const size_t num_values = is_tuple ? values.list->items.size() : 1;
  size_t used = 0;
  TextBuilder out(heap);
  const std::string_view text = format.view;
  for (size_t i = 0; i < text.size();) {
    const size_t percent = std::min(text.find('%', i), text.size());
    RETURN_IF_ERROR(out.append(text.substr(i, percent - i)));
    if (percent == text.size()) break;
    i = percent + 1;
    if (i < text.size() && text[i] == '(') return unimplemented("a format with names is not supported");
    ASSIGN_OR_RETURN(const Conversion conversion, read_conversion(text, i));
    if (conversion.type == '%') {
      RETURN_IF_ERROR(out.append("%"));
      continue;
    }
    if (used == num_values) return invalid_argument("not enough arguments for the format");
    ASSIGN_OR_RETURN(std::string part, convert(heap, conversion, is_tuple ? values.list->items[used] : values));
    ++used;
    const auto num_chars = static_cast<size_t>(
        std::count_if(part.begin(), part.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
    RETURN_IF_ERROR(out.append(padded(conversion, std::move(part), num_chars)));
  }
  // One value that has items (but a text) may go unused.
  const bool has_items =
      values.is(Kind::kDict) || values.is(Kind::kList) || values.is(Kind::kRange) || values.is(Kind::kUndefined);
  if (used < num_values && !has_items) {
    return invalid_argument("not all arguments are used by the format");
  }
  return heap.text(out.take());
}

}  // namespace transept::jinja
