// Filters of texts and numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/chat/filter_functions.h"
#include "text/chat/json_text.h"
#include "text/chat/methods.h"
#include "text/chat/text_format.h"
#include "text/chat/text_methods.h"
#include "text/chat/text_ops.h"
#include "text/chat/value_ops.h"
#include "text/unicode/letter_case.h"
#include "text/unicode/unicode.h"

namespace transept::jinja::filter {
namespace {

using Bound = std::vector<Value>;

bool given_true(const Value& value) { return !value.missing() && truth(value); }

// A filter without arguments, of str(value).
template <typename Change>
StatusOr<Value> changed_text(Heap& heap, const Value& value, const Arguments& arguments, Change change) {
  RETURN_IF_ERROR(bind("the filter", arguments, {}).status());
  ASSIGN_OR_RETURN(const Value text, to_text(heap, value));
  RETURN_IF_ERROR(heap.charge_bytes(text.text->view.size()));
  return heap.text(change(text.text->view));
}

}  // namespace

StatusOr<Value> abs(Heap&, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("abs", arguments, {}).status());
  if (value.is(Kind::kFloat)) return floating(std::abs(value.number));
  if (value.is(Kind::kBigInt)) return unimplemented("abs of an integer beyond 64 bits is not supported");
  if (!value.is_integral()) return invalid_argument("abs needs a number, not ", type_name(value));
  return value.integer < 0 ? negative(value) : positive(value);
}

StatusOr<Value> attr(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("attr", arguments, {{"name", true}}));
  ASSIGN_OR_RETURN(const std::string_view name, text_of(bound[0], "the name"));
  return attribute_alone(heap, value, name);
}

StatusOr<Value> capitalize(Heap& heap, const Value& value, const Arguments& arguments) {
  return changed_text(heap, value, arguments, [](std::string_view text) { return jinja::capitalize(text); });
}

StatusOr<Value> default_value(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("default", arguments, {{"default_value"}, {"boolean"}}));
  if (!value.is(Kind::kUndefined) && (!given_true(bound[1]) || truth(value))) return value;
  return bound[0].missing() ? heap.text("") : bound[0];
}

StatusOr<Value> float_value(Heap&, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("float", arguments, {{"default"}}));
  if (value.is(Kind::kUndefined)) return invalid_argument("float of an undefined value");
  if (value.is(Kind::kFloat)) return value;
  if (value.is_integral()) return floating(static_cast<double>(value.integer));
  if (value.is(Kind::kBigInt)) return unimplemented("float of an integer beyond 64 bits is not supported");
  const std::optional<double> number = value.is(Kind::kText) ? parse_float(value.text->view) : std::nullopt;
  if (number.has_value()) return floating(*number);
  return bound[0].missing() ? floating(0) : bound[0];
}

StatusOr<Value> format(Heap& heap, const Value& value, const Arguments& arguments) {
  if (!arguments.names.empty()) return unimplemented("a format with names is not supported");
  ASSIGN_OR_RETURN(const Value text, to_text(heap, value));
  return format_percent(heap, *text.text, heap.tuple(arguments.places));
}

StatusOr<Value> indent(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("indent", arguments, {{"width"}, {"first"}, {"blank"}}));
  ASSIGN_OR_RETURN(const std::string_view text, text_of(value, "what is indented"));
  std::string indention(4, ' ');
  if (bound[0].is(Kind::kText)) {
    indention = bound[0].text->view;
  } else {
    ASSIGN_OR_RETURN(const int64_t width, integer_or(bound[0], 4, "the width"));
    RETURN_IF_ERROR(heap.charge(std::max<int64_t>(width, 0) / 64));
    indention.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool blank = given_true(bound[2]);
  TextBuilder out(heap);
  if (given_true(bound[1])) RETURN_IF_ERROR(out.append(indention));
  const std::string ended = str_cat(text, "\n");
  const std::vector<std::string_view> parts = split_lines(ended, false);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) {
      RETURN_IF_ERROR(out.append("\n"));
      if (blank || !parts[i].empty()) RETURN_IF_ERROR(out.append(indention));
    }
    RETURN_IF_ERROR(out.append(parts[i]));
  }
  return heap.text(out.take());
}

StatusOr<Value> int_value(Heap&, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("int", arguments, {{"default"}, {"base"}}));
  ASSIGN_OR_RETURN(const int64_t base, integer_or(bound[1], 10, "the base"));
  if (base < 2 || base > 36) return unimplemented("int in such a base is not supported");
  if (value.is(Kind::kUndefined)) return invalid_argument("int of an undefined value");
  if (value.is_integral()) return integer(value.integer);
  if (value.is(Kind::kBigInt)) return value;
  std::optional<double> number;
  if (value.is(Kind::kText)) {
    const std::optional<int64_t> parsed = parse_int(value.text->view, static_cast<int>(base));
    if (parsed.has_value()) return integer(*parsed);
    number = parse_float(value.text->view);
  } else if (value.is(Kind::kFloat)) {
    if (std::isinf(value.number)) return invalid_argument("int of infinity");
    number = value.number;
  }
  if (number.has_value() && std::isfinite(*number)) {
    if (std::abs(*number) >= 0x1p63) return unimplemented("an integer beyond 64 bits is not supported");
    return integer(static_cast<int64_t>(*number));
  }
  return bound[0].missing() ? integer(0) : bound[0];
}

StatusOr<Value> length(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("length", arguments, {}).status());
  if (value.is(Kind::kLoop)) {
    ASSIGN_OR_RETURN(const int64_t of_loop, value.loop->find_length(heap));
    return integer(of_loop);
  }
  const std::optional<int64_t> found = length_of(value);
  if (!found.has_value()) return invalid_argument(type_name(value), " has no length");
  return integer(*found);
}

StatusOr<Value> lower(Heap& heap, const Value& value, const Arguments& arguments) {
  return changed_text(heap, value, arguments, lowercase_in_context);
}

StatusOr<Value> replace(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("replace", arguments, {{"old", true}, {"new", true}, {"count"}}));
  ASSIGN_OR_RETURN(const std::string text, to_string(heap, value));
  ASSIGN_OR_RETURN(const std::string old, to_string(heap, bound[0]));
  ASSIGN_OR_RETURN(const std::string with, to_string(heap, bound[1]));
  ASSIGN_OR_RETURN(const int64_t count, integer_or(bound[2].is(Kind::kNone) ? Value() : bound[2], -1, "the count"));
  return replace_text(heap, text, old, with, count);
}

StatusOr<Value> round(Heap&, const Value& value, const Arguments& arguments) {
  constexpr int64_t kMostDigits = 300;
  ASSIGN_OR_RETURN(const Bound bound, bind("round", arguments, {{"precision"}, {"method"}}));
  ASSIGN_OR_RETURN(const int64_t precision, integer_or(bound[0], 0, "the precision"));
  std::string_view method = "common";
  if (!bound[1].missing()) {
    ASSIGN_OR_RETURN(method, text_of(bound[1], "the method"));
  }
  if (method != "common" && method != "ceil" && method != "floor") return invalid_argument("round has no such method");
  if (value.is(Kind::kBigInt)) return unimplemented("round of an integer beyond 64 bits is not supported");
  if (!value.is(Kind::kFloat) && !value.is_integral())
    return invalid_argument("round needs a number, not ", type_name(value));
  if (precision < 0 || precision > kMostDigits) return unimplemented("round to such a place is not supported");
  if (method == "common") {
    if (value.is_integral()) return integer(value.integer);
    if (!std::isfinite(value.number)) return value;
    std::array<char, 700> text{};  // correctly rounded, as Python does it
    std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(precision), value.number);
    return floating(std::strtod(text.data(), nullptr));
  }
  const double number = value.is(Kind::kFloat) ? value.number : static_cast<double>(value.integer);
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number * scale;
  if (!std::isfinite(scaled)) return invalid_argument("round of a number that is too large");
  const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  return floating((whole + 0.0) / scale);  // an int in Python: there is no -0
}

StatusOr<Value> safe(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("safe", arguments, {}).status());
  ASSIGN_OR_RETURN(std::string text, to_string(heap, value));
  return heap.text(std::move(text), /*safe=*/true);
}

StatusOr<Value> string(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("string", arguments, {}).status());
  return to_text(heap, value);
}

StatusOr<Value> title(Heap& heap, const Value& value, const Arguments& arguments) {
  return changed_text(heap, value, arguments, title_words);
}

StatusOr<Value> tojson(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound,
                   bind("tojson", arguments, {{"ensure_ascii"}, {"indent"}, {"separators"}, {"sort_keys"}}));
  JsonTextOptions options{.ensure_ascii = given_true(bound[0]),
                          .item_separator = ", ",
                          .key_separator = ": ",
                          .sort_keys = given_true(bound[3])};
  if (bound[1].is(Kind::kText)) {
    options.indent = bound[1].text->view;
  } else if (!bound[1].missing() && !bound[1].is(Kind::kNone)) {
    ASSIGN_OR_RETURN(const int64_t width, integer_or(bound[1], 0, "the indent"));
    RETURN_IF_ERROR(heap.charge(std::max<int64_t>(width, 0) / 64));
    options.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  if (options.indent.has_value()) options.item_separator = ",";
  if (!bound[2].missing() && !bound[2].is(Kind::kNone)) {
    ASSIGN_OR_RETURN(const std::vector<Value> separators, items_of(heap, bound[2]));
    if (separators.size() != 2) return invalid_argument("tojson needs two separators");
    ASSIGN_OR_RETURN(options.item_separator, text_of(separators[0], "a separator"));
    ASSIGN_OR_RETURN(options.key_separator, text_of(separators[1], "a separator"));
  }
  TextBuilder out(heap);
  RETURN_IF_ERROR(append_json(out, value, options));
  return heap.text(out.take());
}

StatusOr<Value> trim(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("trim", arguments, {{"chars"}}));
  ASSIGN_OR_RETURN(const Value text, to_text(heap, value));
  std::optional<std::string_view> characters;
  if (!bound[0].missing() && !bound[0].is(Kind::kNone)) {
    ASSIGN_OR_RETURN(characters, text_of(bound[0], "the characters"));
  }
  return strip_text(heap, *text.text, characters, Sides::kBoth);
}

StatusOr<Value> upper(Heap& heap, const Value& value, const Arguments& arguments) {
  return changed_text(heap, value, arguments, uppercase);
}

}  // namespace transept::jinja::filter
